import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const keys = () => fixture.query('SELECT _key, memo FROM events ORDER BY memo');

describe('keys', () => {
  it('number the rows of one export that share an id, in the order of the file', async () => {
    const rows = Array.from({ length: 5_000 }, (_, i) => ({ id: `e${i % 1_000}`, memo: String(i).padStart(5, '0') }));
    await fixture.load([fixture.window('2026-01-01', csvOf(rows, ['memo', 'pad']).replace('\n', '\n'))]);
    const found = await keys();
    const wanted = rows.map(({ id }, i) => (i < 1_000 ? id : `${id}#${Math.floor(i / 1_000) + 1}`));
    expect(found.map((row) => row._key)).toEqual(wanted);
  });

  it('skip a number that is the id of another row', async () => {
    const rows = ['a', 'a', 'a#2', 'a', 'a#2', 'a#04', 'a#4'].map((id, i) => ({ id, memo: `m${i}` }));
    await fixture.load([fixture.window('2026-01-01', csvOf(rows))]);
    expect((await keys()).map((row) => row._key)).toEqual(['a', 'a#3', 'a#2', 'a#5', 'a#2#2', 'a#04', 'a#4']);
  });

  it('are numbered over the files of one window in the order of the list', async () => {
    const first = csvOf([
      { id: 'a', memo: '1' },
      { id: 'b', memo: '2' },
    ]);
    const second = csvOf([
      { id: 'b', memo: '3', extra: 'x' },
      { id: 'a', memo: '4' },
      { id: 'c', memo: '5' },
    ]);
    const [commit] = await fixture.load([fixture.window('2026-01-01', [first, second])]);
    expect(commit.rows).toBe(5);
    expect((await keys()).map((row) => row._key)).toEqual(['a', 'b', 'b#2', 'a#2', 'c']);
  });

  it('are a hash of the cells when there is no id', async () => {
    const csv =
      'df_event_detail_log_id,df_unified_id,event_name,가,memo\n,u,login,"나,",1\n,u,login,"나,",1\n,u,login,,2\nx,u,,,3\n';
    const hash = (...cells: [string, string][]) => {
      const text = cells.map(([n, t]) => `${Buffer.byteLength(n)}:${n}${Buffer.byteLength(t)}:${t}`).join('');
      return `hash:${createHash('sha256').update(text).digest('hex')}`;
    };
    const first = hash(['df_event_name', 'login'], ['df_unified_id', 'u'], ['memo', '1'], ['가', '나,']);
    const other = hash(['df_event_name', 'login'], ['df_unified_id', 'u'], ['memo', '2']);
    await fixture.load([fixture.window('2026-01-01', csv)]);
    expect((await fixture.query('SELECT _key FROM events ORDER BY memo, _key')).map((row) => row._key)).toEqual([
      first,
      `${first}#2`,
      other,
      'x',
    ]);
  });

  it('are hashes when the export has no id column', async () => {
    await fixture.load([fixture.window('2026-01-01', 'df_unified_id,memo\nu,1\nu,2\nu,1\n')]);
    const found = (await fixture.query('SELECT _key FROM events ORDER BY memo, _key')).map(({ _key }) => String(_key));
    expect(found).toEqual([found[0], `${found[0]}#2`, expect.stringMatching(/^hash:[0-9a-f]{64}$/)]);
    expect(found[2]).not.toBe(found[0]);
  });

  it('are unchanged and unique when such a window is read again', async () => {
    const csv =
      'df_event_detail_log_id,df_unified_id,event_name,memo\n,u,login,1\n,u,login,1\nx,u,,3\nx,u,,3\n"",u,,4\n';
    await fixture.load([fixture.window('2026-01-01', csv)]);
    const before = await keys();
    await fixture.load([fixture.window('2026-01-01', csv)]);
    expect(await keys()).toEqual(before);
    expect(before).toHaveLength(5);
    expect(await fixture.query('SELECT number, rows_live FROM _dfinery_windows')).toEqual([
      { number: '2', rows_live: '5' },
    ]);
  });
});
