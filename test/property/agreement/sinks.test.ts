import { describe, expect, it } from 'vitest';
import * as forms from '../../support/column-types.ts';
import fc, { shares } from '../../support/property.ts';
import { AgreementFixture, type RowsByKey } from '../../support/targets/agreement.ts';
import { quoted } from '../../support/targets/csv.ts';
import { type CellVector, VECTORS } from '../../support/vectors.ts';

const RUNS = 6;

const NAMES = [
  ...['df_server_datetime', 'df_correction_datetime', 'df_total_purchase_amount', 'df_items_df_quantity', 'event_name'],
  ...['df_event_log_id', 'df_items_k', 'df_items_', 'Case', 'case', 'CASE', 'select', 'a b', 'a.b', 'a"b', "a'b"],
  ...['__proto__', 'constructor', '_key', '_rescued', 'event_date', 'line\nend', 'comma,', '', 'c0', ' x'],
  ...['한글', '😀', 'É', 'é'],
];
const names = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...NAMES) },
  { weight: 1, arbitrary: forms.texts.filter((text) => !/[\r\uFEFF]/.test(text)) },
);
/** A column whose cells have forms of one type, or of all, and perhaps one cell of another. */
const column = (rows: number) =>
  fc.oneof({ weight: 11, arbitrary: forms.someForms }, fc.constant([forms.cells])).chain((some) => {
    const cell = fc.oneof(
      { weight: 6, arbitrary: fc.oneof(...some) },
      { weight: 2, arbitrary: fc.constant('') },
      { weight: 1, arbitrary: fc.constant('null') },
    );
    const stray = fc.option(fc.tuple(fc.nat(rows - 1), forms.cells), { freq: 4 });
    return fc.tuple(names, fc.array(cell, { minLength: rows, maxLength: rows }), stray).map(([name, cells, odd]) => ({
      name,
      cells: odd === null ? cells : cells.with(odd[0], odd[1]),
    }));
  });
const ids = fc.constantFrom('a', 'b', 'c:1', 'c:2', 'd', 'e', '');
const table = fc.integer({ min: 1, max: 14 }).chain((rows) =>
  fc.record({
    ids: fc.array(ids, { minLength: rows, maxLength: rows }),
    columns: fc.array(column(rows), { minLength: 3, maxLength: 12 }),
    /** Which cells are quoted without need. */
    quotes: fc.infiniteStream(fc.boolean()),
    lineEnd: fc.constantFrom('\n', '\r\n'),
    bom: fc.boolean(),
    finalLineEnd: fc.boolean(),
    cuts: fc.array(shares, { maxLength: 6 }),
    timezone: fc.constantFrom(undefined, undefined, 'Asia/Seoul', 'America/New_York'),
  }),
);
type Table = typeof table extends fc.Arbitrary<infer T> ? T : never;

function bodyOf({ ids: keys, columns, quotes, lineEnd, bom, finalLineEnd }: Table): Buffer {
  const text = (cell: string) =>
    /[",\r\n]/.test(cell) || quotes.next().value === true ? `"${cell.replaceAll('"', '""')}"` : cell;
  const header = ['df_event_detail_log_id', ...columns.map((c) => c.name)];
  const rows = keys.map((id, i) => [id, ...columns.map((c) => c.cells[i])]);
  const lines = [header, ...rows].map((row) => row.map(text).join(','));
  return Buffer.from(`${bom ? '\uFEFF' : ''}${lines.join(lineEnd)}${finalLineEnd ? lineEnd : ''}`);
}

async function agree(body: Buffer, cuts: readonly number[], timezone: string | undefined): Promise<RowsByKey> {
  const fixture = new AgreementFixture();
  const window = fixture.exported(body, cuts, timezone);
  const records = await fixture.inRecords(window, timezone);
  expect(await fixture.inDuckDb([window], timezone)).toEqual(records);
  expect(await fixture.inParquet(window, timezone)).toEqual(records);
  // A stream takes the files of the day with it.
  expect(await fixture.inArrow([window], timezone)).toEqual(records);
  expect(records.size).toBe(window.receipt.rows);
  return records;
}

describe('records, DuckDB rows, the Parquet file and the Arrow stream', () => {
  it('hold the same rows when a column name has U+0000 and a row has no id', async () => {
    const held = await agree(Buffer.from('df_event_detail_log_id,a\0b\n1,x\n,y\n'), [], undefined);
    expect([...held.keys()].filter((key) => key.startsWith('hash:'))).toHaveLength(1);
  });

  it('hold the same values under the same keys, for any table', async () => {
    await fc.assert(
      fc.asyncProperty(table, async (given) => {
        const body = bodyOf(given);
        const cuts = given.cuts.map((cut) => Math.floor(cut * body.length)).sort((a, b) => a - b);
        await agree(body, cuts, given.timezone);
      }),
      { numRuns: RUNS },
    );
  });
});

function byZone<T extends { readonly timezone?: string }>(all: readonly T[]): [string | undefined, T[]][] {
  const zones = [...new Set(all.map((vector) => vector.timezone))];
  return zones.map((zone) => [zone, all.filter((vector) => vector.timezone === zone)]);
}

describe('the vectors in every target', () => {
  for (const [timezone, own] of byZone(VECTORS.cells)) {
    it(`agree when each cell is alone in its column (${timezone ?? 'no zone'})`, async () => {
      const header = own.map((_, i) => `v${i}`);
      const csv = `df_event_detail_log_id,${header.join(',')}\nkey,${own.map((v) => quoted(v.cell)).join(',')}\n`;
      const row = (await agree(Buffer.from(csv), [], timezone)).get('key');
      const found = own.map(({ cell }, i) => ({ cell, value: row?.values[i + 1] }));
      expect(found).toEqual(own.map((v) => ({ cell: v.cell, value: expectedOf(v) })));
      expect(row?.rescued).toEqual({});
    });
  }
});

/** What a vector says of the value, in the words of the sinks under test. */
function expectedOf({ cell, type, json }: CellVector): unknown {
  if (type === null) return null;
  return type === 'string' ? cell : forms.canonical(type, forms.exactJson(json[type] ?? '"missing"'));
}
