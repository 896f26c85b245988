import { expect, it } from 'vitest';
import { AgreementFixture } from '../../support/targets/agreement.ts';

const COLUMNS = 5_000;
const ROWS = 200;
/** Cells with a value in each row, beside the id. */
const FILLED = 12;
/** Columns that get a value somewhere. */
const USED = 600;

/** Mostly empty rows; the value of a cell follows from where it stands. */
function wideCsv(): string {
  const header = ['df_event_detail_log_id', ...Array.from({ length: COLUMNS }, (_, c) => `c${c}`)];
  const lines = Array.from({ length: ROWS }, (_, r) => {
    const cells = new Array<string>(COLUMNS).fill('');
    for (let k = 0; k < FILLED; k++) cells[columnOf(r, k)] = valueAt(columnOf(r, k), r);
    return [`e${r}`, ...cells].join(',');
  });
  return `${[header.join(','), ...lines].join('\n')}\n`;
}

const columnOf = (row: number, k: number): number => (row * FILLED + k * 7) % USED;
const valueAt = (column: number, row: number): string =>
  [`${row}`, `${row}.5`, `t${row}`, 'null', `2026-01-${10 + (row % 20)}`][column % 5];

it('five thousand columns, mostly empty have the same values in DuckDB and in the records', async () => {
  const fixture = new AgreementFixture();
  const window = fixture.exported(Buffer.from(wideCsv()), [], undefined);
  const records = await fixture.inRecords(window, undefined);
  const duckDb = await fixture.inDuckDb([window], undefined);
  expect(duckDb.size).toBe(ROWS);
  for (const [key, row] of duckDb) expect(row).toEqual(records.get(key));
  for (let k = 0; k < FILLED; k++) {
    const text = valueAt(columnOf(3, k), 3);
    expect(duckDb.get('e3')?.values[1 + columnOf(3, k)]).toBe(text === 'null' ? null : text);
  }
  const [{ n }] = await fixture.read("SELECT count(*) AS n FROM duckdb_columns() WHERE table_name = 'events'");
  expect(Number(n)).toBeLessThan(USED + 20);
  const [{ known }] = await fixture.read('SELECT count(*) AS known FROM _dfinery_columns');
  expect(Number(known)).toBeGreaterThan(COLUMNS);
});
