import { appendFileSync, readFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemError, withCall } from '../../support/system-calls.ts';
import { ArrowFixture, streamedColumns } from '../../support/targets/arrow.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';
import { withMemoryForOneStatement } from '../../support/targets/memory-shortage.ts';

let fixture: ArrowFixture;
beforeEach(() => {
  fixture = new ArrowFixture();
});
afterEach(() => fixture.close());

const valuesOf = (wanted: string) => streamedColumns(fixture.out).find(({ name }) => name === wanted)?.values;

describe('the windows of an Arrow stream', () => {
  it('keep their own rows and keys, whatever the previous window held', async () => {
    const first = csvOf(['x', 'x', 'y'].map((id) => ({ id, b: 'TRUE', n: '4711' })));
    const second = csvOf(['p', 'q', 'r'].map((id) => ({ id, b: 'FALSE', n: '' })));
    await fixture.write([fixture.window('2026-01-01', first), fixture.window('2026-01-02', second)]);
    expect(valuesOf('_key')).toEqual(['x', 'x#2', 'y', 'p', 'q', 'r']);
    expect(valuesOf('b')).toEqual([true, true, true, false, false, false]);
    expect(valuesOf('n')).toEqual(['4711', '4711', '4711', null, null, null]);
    // Nor does a value of an earlier row stand where a later one has none.
    const { batches, schema } = fixture.table();
    const n = schema.fields.findIndex(({ name }) => name === 'n');
    expect([...(batches.at(-1)?.data.children[n].values.slice(-3) ?? [])]).toEqual([0n, 0n, 0n]);
  });

  it('count a cell that does not fit once, in files of any length', async () => {
    const rows = Array.from({ length: 700 }, (_, i) => ({ id: `k${i}`, memo: 'x'.repeat(1_000) }));
    const csv = csvOf([{ id: 'first', df_server_datetime: 'no time' }, ...rows]);
    const { rescued } = await fixture.write([fixture.window('2026-01-01', csv)]);
    expect(rescued).toEqual(new Map([['df_server_datetime', 1]]));
  });

  it('are sent with memory for a single one of them, also while others are being written', async () => {
    const day = (n: number, cells: Cells) => fixture.window(`2026-01-0${n}`, csvOf([{ id: `r${n}`, ...cells }]));
    await withMemoryForOneStatement(() => fixture.write([day(1, {}), day(2, {}), day(3, { late: '1' })]));
    expect(valuesOf('_key')).toEqual(['r1', 'r2', 'r3']);
    expect(valuesOf('late')).toEqual([null, null, '1']);
  });

  it.each(['ENOSYS', 'EXDEV'])('are copied on a file system that answers a link by %s', async (code) => {
    const link = () => Promise.reject(systemError(code));
    await withCall(promises, 'link', link, () => fixture.write([fixture.window('2026-01-01', csvOf([{ id: 'x' }]))]));
    expect(valuesOf('_key')).toEqual(['x']);
  });

  it('are not sent when the last row is followed by an extra row', async () => {
    const window = fixture.window('2026-01-01', csvOf([{ id: 'a' }, { id: 'b' }]));
    appendFileSync(window.files[0].path, 'a,b"c\n');
    await expect(fixture.write([window])).rejects.toThrow(
      /^DuckDB refused a statement on the Arrow stream \([A-Z][A-Za-z ]+ Error, line \d+\)/,
    );
    const more = fixture.window('2026-01-01', csvOf([{ id: 'a' }]));
    const [, row] = readFileSync(more.files[0].path, 'utf8').split('\n');
    appendFileSync(more.files[0].path, `${row}\n`);
    await expect(fixture.write([more])).rejects.toThrow('a window of 1 rows came to 2');
  });
});
