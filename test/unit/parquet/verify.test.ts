import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';
import { query } from '../../support/targets/query.ts';

let fixture: ParquetFixture;
beforeEach(async () => {
  fixture = new ParquetFixture();
  await fixture.store([fixture.window('2026-01-01', csvOf(ROWS), undefined, 2)], {
    tables: ['events', 'event_items', 'event_logs'],
  });
});
afterEach(() => fixture.close());

const ROWS = [
  { id: 'a:0', n: '1', df_items_x: '1', ...on('2026-01-01') },
  { id: 'a:1', n: '2', df_items_x: '2', ...on('2026-01-01') },
  { id: 'b', n: '3', ...on('2026-01-02') },
];
const verify = (more: object = {}) => verifyParquet({ ...fixture.folderOptions, ...more });
const own = (name: string) => join(fixture.root, '_dfinery', name);
const pathOf = (table: string, date = '2026-01-01') => `${table}/event_date=${date}/data_0.parquet`;

/** Writes a file anew, as somebody would who also knows what the manifest says of it. */
async function rewrite(path: string, select: string): Promise<void> {
  const file = join(fixture.root, path);
  const self = `read_parquet('${file}', hive_partitioning = false)`;
  await query(':memory:', `COPY (SELECT ${select.replaceAll('THIS', self)}) TO '${file}.new' (FORMAT parquet)`);
  renameSync(`${file}.new`, file);
  const [{ n }] = await query(':memory:', `SELECT count(*)::INT AS n FROM '${file}'`);
  const [{ w }] = path.startsWith('events/')
    ? await query(
        ':memory:',
        `SELECT json_group_object(w, n) AS w FROM (SELECT _dfinery_window AS w, count(*) AS n FROM '${file}' GROUP BY 1)`,
      )
    : [{ w: undefined }];
  const bytes = readFileSync(file);
  const { manifest } = fixture;
  const files = manifest.files.map((one) =>
    one.path === path
      ? {
          ...one,
          rows: Number(n),
          bytes: bytes.length,
          sha256: createHash('sha256').update(bytes).digest('hex'),
          ...(w !== undefined && { windows: JSON.parse(String(w)) }),
        }
      : one,
  );
  writeFileSync(own('manifest.json'), JSON.stringify({ ...manifest, files }));
}

const say = (change: object) => writeFileSync(own('manifest.json'), JSON.stringify({ ...fixture.manifest, ...change }));

describe('verify of Parquet files', () => {
  it('finds nothing in what was loaded, with a zone or without', async () => {
    expect(await verify()).toEqual([]);
    const place = join(fixture.dir, 'zoned');
    const window = fixture.window('2026-01-01', csvOf([{ id: 'a', at: '2026-01-01 10:00:00.000' }]), 'Asia/Seoul');
    await fixture.store([window], { place, timezone: 'Asia/Seoul' });
    expect(await verify({ place })).toEqual([]);
  });

  it('takes a file that is written anew with the same rows for the same', async () => {
    await rewrite(pathOf('events'), '* FROM THIS');
    expect(await verify()).toEqual([]);
  });

  it.each([
    ['events', '* EXCLUDE (n) FROM THIS'],
    ['events', '* REPLACE (CAST(n AS INTEGER) AS n) FROM THIS'],
    ['events', '* REPLACE (CAST(df_server_datetime AS TIMESTAMPTZ) AS df_server_datetime) FROM THIS'],
    ['events', 'n AS m, * FROM THIS'],
  ])('names a file of %s that has other columns: %s', async (table, select) => {
    await rewrite(pathOf(table), select);
    expect((await verify()).filter(({ check }) => check === 'columns')).toEqual([
      { check: 'columns', message: expect.stringContaining(`${pathOf(table)} has other columns than ${table} should`) },
    ]);
  });

  it('names the file of another table that has other columns than the first of them', async () => {
    await rewrite(pathOf('event_logs', '2026-01-02'), '* EXCLUDE (n) FROM THIS');
    expect(await verify()).toEqual([
      {
        check: 'columns',
        message: `${pathOf('event_logs', '2026-01-02')} has other columns than event_logs should have: it lacks n BIGINT`,
      },
    ]);
  });

  it.each([
    [
      'events',
      '* REPLACE (CAST(9 AS BIGINT) AS _dfinery_window) FROM THIS',
      [
        'window 1 (2026-01-01 to 2026-01-02) should have 3 rows of its 3, and has 1',
        '2 rows belong to window 9, which has no receipt',
      ],
    ],
    ['events', `* REPLACE (CASE WHEN n = 1 THEN _key END AS _key) FROM THIS`, ['1 row has no _key']],
    ['events', `* REPLACE ('b' AS _key) FROM THIS`, ['1 keys occur more than once']],
    ['event_items', '* FROM THIS LIMIT 1', ['event_items should have 2 rows, and has 1']],
    ['event_logs', '* FROM THIS UNION ALL FROM THIS', ['event_logs should have 2 rows, and has 3']],
  ])('tells by the rows of %s after %s what is wrong', async (table, select, messages) => {
    const path = pathOf(table);
    await rewrite(path, select);
    expect((await verify()).map(({ message }) => message)).toEqual(messages);
  });

  it('compares the rows in a file with what the manifest says of it', async () => {
    const { files } = fixture.manifest;
    say({ files: files.map((file) => (file.path === pathOf('event_items') ? { ...file, rows: 7 } : file)) });
    expect(await verify()).toEqual([{ check: 'files', message: `${pathOf('event_items')} has 2 rows instead of 7` }]);
  });

  it('names a receipt with more rows than it ever had, and days that no receipt covers', async () => {
    const { receipts } = fixture.manifest;
    say({
      receipts: receipts.map((receipt) => ({ ...receipt, rows: 2 })),
      cursor: { version: 1, from_date: '2026-01-05' },
    });
    expect(await verify()).toEqual([
      { check: 'rows', message: 'window 1 (2026-01-01 to 2026-01-02) should have 3 rows of its 2, and has 3' },
      { check: 'days', message: 'the cursor is at 2026-01-05, but no receipt covers 2026-01-03 to 2026-01-04' },
    ]);
  });

  it('finds what a reader finds with a pattern, also behind a link, and nothing else', async () => {
    const root = fixture.root;
    mkdirSync(join(root, 'events/event_date=2026-01-09/folder.parquet'), { recursive: true });
    writeFileSync(join(root, 'events/notes.txt'), 'x');
    writeFileSync(join(root, 'mine.parquet'), 'x');
    expect(await verify()).toEqual([]);
    symlinkSync(join(root, pathOf('events')), join(root, 'events/event_date=2026-01-09/z.parquet'));
    writeFileSync(join(root, 'event_logs/a.parquet'), 'x');
    expect((await verify()).map(({ message }) => message).sort()).toEqual(
      ['event_logs/a.parquet', 'events/event_date=2026-01-09/z.parquet'].map(
        (path) => `${path} is not in the manifest, and readers see it`,
      ),
    );
  });

  it('waits for the change of a writer for as long as it is told', async () => {
    writeFileSync(own('journal.json'), '{}');
    let now = 0;
    const waited: number[] = [];
    const sleep = async (ms: number) => {
      now += ms;
      waited.push(ms);
      if (now >= 250 && isEnding) rmSync(own('journal.json'), { force: true });
    };
    const clock = { now: () => now, sleep, after: () => () => {} };
    let isEnding = false;
    await expect(verify({ clock, lockWaitMs: 250 })).rejects.toMatchObject({
      kind: 'transient',
      message: expect.stringContaining('a change that is not finished'),
    });
    expect(waited).toEqual([100, 100, 50]);
    expect(existsSync(own('journal.json'))).toBe(true);
    isEnding = true;
    expect(await verify({ clock, lockWaitMs: 10_000 })).toEqual([]);
  });

  it('stops when it is told to', async () => {
    await expect(verify({ signal: AbortSignal.abort(new Error('stop')) })).rejects.toThrow('stop');
  });

  it('says which file cannot be read', async () => {
    rmSync(own('manifest.json'));
    mkdirSync(own('manifest.json'));
    await expect(verify()).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringMatching(/manifest\.json cannot be read \(EISDIR\)/),
    });
  });
});
