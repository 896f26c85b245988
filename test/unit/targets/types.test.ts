import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TYPES } from '../../../src/cells/types/index.ts';
import { COLUMN_TYPES } from '../../../src/cells/types/type.ts';
import { ORDERS_OF_THREE } from '../../support/orders.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { TARGETS, TargetFixture } from '../../support/targets/target-fixture.ts';
import { VECTORS } from '../../support/vectors.ts';

/** Cells that make a column of each type. */
const columns = COLUMN_TYPES.map((type, i) => ({
  name: `c${i}`,
  type,
  cells: VECTORS.columns.find((vector) => vector.type === type && vector.timezone === undefined)?.cells ?? [],
}));
const most = Math.max(...columns.map(({ cells }) => cells.length));
const rows = Array.from({ length: most }, (_, row) => ({
  id: `${row}`,
  ...Object.fromEntries(columns.map(({ name, cells }) => [name, cells[row] ?? ''])),
}));
const texts = { id: 'text', ...Object.fromEntries(columns.map(({ name }) => [name, 'a text'])) };

describe.each(TARGETS)('a column of each type in %s', (target) => {
  let fixture: TargetFixture;
  beforeEach(() => {
    fixture = TargetFixture.of(target);
  });
  afterEach(() => fixture.close());

  /** The types of the columns as a reader finds them, who takes the declared ones and those of the files together. */
  async function storedTypes(): Promise<string[]> {
    const types = columns.map(({ name }) => `typeof(any_value(${name})) AS ${name}`);
    const [row] = await fixture.read(`SELECT ${types.join(', ')} FROM events`);
    return columns.map(({ name }) => String(row[name]).replace('TIMESTAMP WITH TIME ZONE', 'TIMESTAMPTZ'));
  }

  it.each([undefined, 'Asia/Seoul'])(
    'has the declared type in the files too, and may become text (%s)',
    async (timezone) => {
      const { fixture: maker } = fixture;
      const first = maker.window('2026-01-01', csvOf(rows), timezone);
      const second = maker.window('2026-01-02', csvOf([texts]), timezone);
      await fixture.store([first], { timezone });
      expect(await storedTypes()).toEqual(columns.map(({ type }) => TYPES[type].duckdb(timezone !== undefined)));
      await fixture.store([second], { timezone });
      expect(await storedTypes()).toEqual(columns.map(() => 'VARCHAR'));
      expect(await fixture.verify()).toEqual([]);
    },
  );

  it('has a date of a zone beside datetimes and text, in every order of days', async () => {
    const [date, timezone] = ['2026-01-04', 'America/Sao_Paulo'];
    const cells = [date, '2026-01-02 03:04:05', 'a text'];
    const expected = [date, '2026-01-02 03:04:05.000', 'a text'].map((at) => ({ at, r: null }));
    for (const batches of [[[0, 1, 2]], ...ORDERS_OF_THREE.map((order) => order.map((i) => [i]))]) {
      fixture.close();
      fixture = TargetFixture.of(target);
      const windows = cells.map((at, i) =>
        fixture.fixture.window(`2026-01-0${i + 1}`, csvOf([{ id: `${i}`, at }]), timezone),
      );
      for (const batch of batches) await fixture.store([batch.map((i) => windows[i])], { timezone });
      const rows = await fixture.read('SELECT "at", _rescued AS r FROM events ORDER BY _key');
      expect({ batches, rows }).toEqual({ batches, rows: expected });
      expect(await fixture.verify()).toEqual([]);
    }
  });
});
