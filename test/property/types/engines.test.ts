import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { literal } from '../../../src/base/sql.ts';
import { COLUMN_TYPES, type ColumnType, codecOf, fitsSql } from '../../../src/cells/types/column-types.ts';
import { STRING } from '../../../src/cells/types/forms.ts';
import { Zone } from '../../../src/cells/types/zone.ts';
import { cellSqlOf } from '../../../src/engine/rows/csv-sql.ts';
import { newColumn } from '../../../src/table/tables.ts';
import { canonical, cells, cellTextsOf, exactJson, sqlText } from '../../support/column-types.ts';
import { fitsBytes, formsOfCell, jsonOf } from '../../support/forms.ts';
import { newFolder } from '../../support/new-folder.ts';
import fc from '../../support/property.ts';
import { quoted } from '../../support/targets/csv.ts';
import { Duck } from './duck.ts';

const ZONES = [undefined, 'Asia/Seoul', 'America/New_York', 'America/Sao_Paulo', 'Pacific/Apia'];

const duck = new Duck();

describe('the SQL and the bytes of a codec', () => {
  for (const name of ZONES) {
    it(`accept the same cells and give them the same values (${name ?? 'no zone'})`, async () => {
      const zone = name === undefined ? undefined : new Zone(name);
      await fc.assert(
        fc.asyncProperty(fc.array(cells, { minLength: 150, maxLength: 200 }), async (batch) => {
          await duck.load(batch);
          for (const type of name === undefined ? COLUMN_TYPES : (['datetime'] as const)) {
            const codec = codecOf(type, zone);
            const fits = await duck.column(fitsSql(codec, 'c'));
            const values = await duck.column(sqlText(type, codec.checkedSql('c'), zone !== undefined));
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

/** Cells of one column that all fit, with the forms of them together. */
function columns(type: ColumnType, zone: Zone | undefined) {
  return fc
    .tuple(cellTextsOf(type), fc.boolean())
    .chain(([some, withNull]) => {
      const all = withNull ? [...some, fc.constant('null')] : some;
      return fc.array(fc.oneof(...all), { minLength: 100, maxLength: 160 });
    })
    .map((cells) => {
      const kept = cells.filter((cell) => cell !== '' && fitsBytes(type, cell, zone));
      return { cells: kept, forms: kept.reduce((all, cell) => all | formsOfCell(cell, zone), 0) };
    })
    .filter(({ cells }) => cells.length > 0);
}

describe('the fast path for a clean column', () => {
  const folder = newFolder();

  async function read(cells: readonly string[], sql: string) {
    const file = join(folder, 'cells.csv');
    writeFileSync(file, cells.map((cell, n) => `${n},${quoted(cell)}\n`).join(''));
    await duck.run(
      `CREATE OR REPLACE TABLE cells AS FROM read_csv(${literal(file)}, auto_detect = false, header = false, delim = ',', ` +
        `quote = '"', escape = '"', new_line = '\\n', columns = {'n': 'INTEGER', 'c': 'VARCHAR'})`,
    );
    return duck.column(sql);
  }

  for (const name of [undefined, 'Asia/Seoul', 'America/New_York']) {
    const zone = name === undefined ? undefined : new Zone(name);
    for (const type of name === undefined ? COLUMN_TYPES : (['datetime'] as const)) {
      it(`gives a column of type ${type} its values (${name ?? 'no zone'})`, async () => {
        const column = newColumn({ source: 'c', group: 'custom', position: 0, type });
        await fc.assert(
          fc.asyncProperty(columns(type, zone), async ({ cells, forms }) => {
            const dayCells =
              type === 'string' ? { forms: STRING, hasAbsentNull: false } : { forms, hasAbsentNull: true };
            const { valueSql, misfitSql } = cellSqlOf(column, dayCells, 'c', zone);
            expect(misfitSql).toBeUndefined();
            if (valueSql === undefined) return;
            const values = await read(cells, sqlText(type, valueSql, zone !== undefined));
            expect(values.map((text, i) => ({ cell: cells[i], value: canonical(type, text) }))).toEqual(
              cells.map((cell) => ({ cell, value: canonical(type, exactJson(jsonOf(type, cell, zone))) })),
            );
          }),
          { numRuns: 16 },
        );
      });
    }
  }
});
