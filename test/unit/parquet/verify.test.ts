import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf, on } from '../../support/targets/csv.ts';
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

describe('verify of Parquet files', () => {
  it('finds nothing in loaded data, with and without a zone', async () => {
    expect(await verify()).toEqual([]);
    const place = join(fixture.dir, 'zoned');
    const window = fixture.window('2026-01-01', csvOf([{ id: 'a', at: '2026-01-01 10:00:00.000' }]), 'Asia/Seoul');
    await fixture.store([window], { place, timezone: 'Asia/Seoul' });
    expect(await verify({ place })).toEqual([]);
  });

  it('names a file of another table whose columns differ from its first file', async () => {
    await rewrite(pathOf('event_logs', '2026-01-02'), '* EXCLUDE (n) FROM THIS');
    expect(await verify()).toEqual([
      {
        check: 'columns',
        message: `${pathOf('event_logs', '2026-01-02')} has other columns than event_logs should have: it lacks n BIGINT`,
      },
    ]);
  });

  it('finds the files that a reader finds with a pattern, also behind a link, and no others', async () => {
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

  it('waits for the change of a writer as long as allowed', async () => {
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

  it('names a file that cannot be read', async () => {
    rmSync(own('manifest.json'));
    mkdirSync(own('manifest.json'));
    await expect(verify()).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringMatching(/manifest\.json cannot be read \(EISDIR\)/),
    });
  });
});
