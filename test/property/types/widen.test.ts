import { describe, expect, it } from 'vitest';
import { COLUMN_TYPES, codecOf, TYPES, widenSql } from '../../../src/cells/types/column-types.ts';
import { Zone } from '../../../src/cells/types/zone.ts';
import { WIDENINGS } from '../../support/column-types.ts';
import { Duck } from './duck.ts';

describe('widening a stored column', () => {
  const duck = new Duck();

  for (const { from, to, cells, texts } of WIDENINGS) {
    it(`${from} becomes ${to} by its canonical text`, async () => {
      await duck.load(cells);
      const sql = widenSql(codecOf(from, undefined).checkedSql('c'), from, to, undefined);
      expect(await duck.column(`CAST(${sql} AS VARCHAR)`)).toEqual(texts);
    });
  }

  it('is shown by a case for each type and each that it widens to', () => {
    const all = COLUMN_TYPES.flatMap((from) => TYPES[from].widerTypes.map((to) => `${from} ${to}`));
    expect(WIDENINGS.map(({ from, to }) => `${from} ${to}`).sort()).toEqual(all.sort());
  });

  it('every widening yields the declared type in a table with rows', async () => {
    for (const zone of [undefined, new Zone('Asia/Seoul')]) {
      for (const from of COLUMN_TYPES) {
        for (const to of TYPES[from].widerTypes) {
          const [old, wide] = [from, to].map((type) => codecOf(type, zone).duckdbType);
          await duck.run(`CREATE OR REPLACE TABLE t AS SELECT CAST(NULL AS ${old}) AS x FROM range(3)`);
          await duck.run(`ALTER TABLE t ALTER x SET DATA TYPE ${wide} USING ${widenSql('x', from, to, zone)}`);
          expect(await duck.rows('SELECT typeof(any_value(x)), count(*) FROM t')).toEqual([
            [wide === 'TIMESTAMPTZ' ? 'TIMESTAMP WITH TIME ZONE' : wide, '3'],
          ]);
        }
      }
    }
  });

  it('writes an instant in local time', async () => {
    const zone = new Zone('America/New_York');
    await duck.load(['2024-07-01 12:00:00', '2024-07-01T12:00:00Z']);
    expect(await duck.column(widenSql(codecOf('datetime', zone).checkedSql('c'), 'datetime', 'string', zone))).toEqual([
      '2024-07-01 12:00:00.000',
      '2024-07-01 08:00:00.000',
    ]);
    await duck.load(['2024-07-01']);
    const widened = widenSql(codecOf('date', zone).checkedSql('c'), 'date', 'datetime', zone);
    expect(await duck.column(`epoch_us(${widened})`)).toEqual([String(Date.UTC(2024, 6, 1, 4) * 1000)]);
  });

  const textsOf = async (name: string, cells: readonly string[]) => {
    const zone = new Zone(name);
    await duck.load(cells);
    return duck.column(widenSql(codecOf('datetime', zone).checkedSql('c'), 'datetime', 'string', zone));
  };

  it.each([
    ['Asia/Seoul', '9999-12-31T23:59:59.999999Z', '9999-12-31 23:59:59.999999Z'],
    ['America/New_York', '0001-01-01T00:00:00Z', '0001-01-01 00:00:00.000Z'],
  ])('writes an instant in UTC if its year in %s has no four digits: %s', async (name, cell, text) => {
    expect(await textsOf(name, [cell])).toEqual([text]);
  });

  it('writes a date as a date, also where the clock skips its midnight', async () => {
    const cells = ['2026-04-24', '2026-04-24 02:00:00', '2026-04-25'];
    expect(await textsOf('Africa/Cairo', cells)).toEqual(['2026-04-24', '2026-04-24 02:00:00.000', '2026-04-25']);
  });

  it('writes the earlier instant of a local time that occurs twice in UTC', async () => {
    const twice = ['2026-11-01T05:30:00Z', '2026-11-01T06:30:00Z', '2026-11-01 01:30:00'];
    const [earlier, later] = ['2026-11-01 05:30:00.000Z', '2026-11-01 01:30:00.000'];
    expect(await textsOf('America/New_York', twice)).toEqual([earlier, later, later]);
    // There midnight of UTC is the earlier one, and a text without its time would be no datetime.
    expect(await textsOf('Europe/London', ['2026-10-25T00:00:00Z'])).toEqual(['2026-10-25 00:00:00.000Z']);
  });
});
