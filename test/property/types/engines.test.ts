import { describe, expect, it } from 'vitest';
import { COLUMN_TYPES, codecOf, fitsSql } from '../../../src/cells/types/column-types.ts';
import { Zone } from '../../../src/cells/types/zone.ts';
import { canonical, cells, exactJson, sqlText } from '../../support/column-types.ts';
import { fitsBytes, jsonOf } from '../../support/forms.ts';
import fc from '../../support/property.ts';
import { Duck } from './duck.ts';

const ZONES = [undefined, 'Asia/Seoul', 'America/New_York', 'America/Sao_Paulo', 'Pacific/Apia'];

describe('the SQL and the bytes of a codec', () => {
  const duck = new Duck();

  for (const name of ZONES) {
    it(`accept the same cells and give them the same values (${name ?? 'no zone'})`, async () => {
      const zone = name === undefined ? undefined : new Zone(name);
      await fc.assert(
        fc.asyncProperty(fc.array(cells, { minLength: 150, maxLength: 200 }), async (batch) => {
          await duck.load(batch);
          for (const type of name === undefined ? COLUMN_TYPES : (['datetime'] as const)) {
            const codec = codecOf(type, zone);
            const fits = await duck.column(fitsSql(codec, 'c'));
            const values = await duck.column(sqlText(type, codec.valueSql('c'), zone !== undefined));
            batch.forEach((cell, i) => {
              const isFit = fitsBytes(type, cell, zone);
              const expected = isFit ? canonical(type, exactJson(jsonOf(type, cell, zone))) : null;
              expect({ cell, type, fits: fits[i], value: canonical(type, values[i]) }).toEqual({
                cell,
                type,
                fits: isFit,
                value: expected,
              });
            });
          }
        }),
        { numRuns: 4 },
      );
    });
  }
});
