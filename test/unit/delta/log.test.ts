import { readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { literal } from '../../../src/cells/types/sql.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { verifyDelta } from '../../support/targets/files.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';
const second = '2026-01-02';
const LOG = 'events/_delta_log';
const inLog = (name: string) => join(fixture.root, LOG, name);
const numbered = (version: number, kind = 'json') => inLog(`${String(version).padStart(20, '0')}.${kind}`);
const put = (version: number, ...lines: unknown[]) =>
  writeFileSync(
    numbered(version),
    lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n'),
  );

const load = (day = first, id = 'a') => fixture.store([fixture.window(day, csvOf([{ id, ...on(day) }]))]);

/** Paths of the live files, from the table's folder. */
const paths = () => fixture.withTable((events) => events.files().map(({ path }) => path.slice('events/'.length)));
const refused = (message: RegExp) =>
  expect(fixture.withTable(() => {})).rejects.toMatchObject({
    kind: 'config',
    message: expect.stringMatching(message),
  });
const domain = (name: string, configuration: string, removed = false) => ({
  domainMetadata: { domain: name, configuration, removed },
});

describe('an entry of the log', () => {
  it.each<[string, RegExp, unknown]>([
    ['an absolute path', /outside the table/, { remove: { path: '/etc/passwd' } }],
    ['a path of another system', /outside the table/, { remove: { path: '\\\\server\\x' } }],
    ['a drive', /outside the table/, { remove: { path: 'C:x' } }],
    ['an absolute path, encoded', /outside the table/, { remove: { path: '%2Fetc/passwd' } }],
    ['an empty name', /outside the table/, { remove: { path: 'a//b' } }],
    ['the same folder', /outside the table/, { remove: { path: './b' } }],
    ['the folder above', /outside the table/, { remove: { path: 'a/../../b' } }],
    ['a character that no path has', /outside the table/, { remove: { path: 'a%00b' } }],
    ['no encoding', /outside the table/, { remove: { path: 'a%zz' } }],
    ['a list', /a line is no object/, '[]'],
    ['nothing', /a line is no object/, 'null'],
    ['half a line', /it is not JSON/, '{"add":'],
    ['a number where a text is wanted', /remove\/path must be string/, { remove: { path: 1 } }],
    ['a strange feature of readers', /feature "x", which/, { protocol: protocol({ readerFeatures: ['x'] }) }],
    ['a strange feature of writers', /feature "x", which/, { protocol: protocol({ writerFeatures: ['x'] }) }],
    [
      'strange features of both',
      /feature "x", "y", which/,
      { protocol: protocol({ readerFeatures: ['x'], writerFeatures: ['x', 'y'] }) },
    ],
    ['another version for readers', /protocol 2\/7, wanted 3\/7/, { protocol: protocol({ minReaderVersion: 2 }) }],
    ['another version for writers', /protocol 3\/5, wanted 3\/7/, { protocol: protocol({ minWriterVersion: 5 }) }],
    ['no description', /did not make/, domain('dfinery.table', '{}', true)],
    [
      'a description that is nothing',
      /dfinery\.table\) cannot be used: it must be object/,
      domain('dfinery.table', 'null'),
    ],
    [
      'half a description',
      /table\) cannot be used: it must have required property/,
      domain('dfinery.table', '{"v":2}'),
    ],
    ['one of no version', /table\) cannot be used: v must be 2/, table({ v: 1 })],
    ['a wrong description', /table\) cannot be used: timezone must be string,null/, table({ timezone: 7 })],
    ['that of another table', /did not make/, table({ table: 'event_items' })],
    ['one of a later version', /by a later version \(3\) of this program/, table({ v: 3 })],
    ['other partitions', /no longer partitioned by event_date/, partitionedBy('_key')],
    ['one partition more', /no longer partitioned by event_date/, partitionedBy('event_date', '_key')],
    ['no partition', /no longer partitioned by event_date/, partitionedBy()],
  ])('is refused with %s', async (_, message, line) => {
    await load();
    put(1, line);
    await refused(message);
  });

  it('is refused where the state in it is not what this program writes', async () => {
    await load();
    put(1, domain('dfinery.columns', 'null'));
    await expect(verifyDelta(fixture.lakeOptions)).rejects.toThrow(
      /dfinery\.columns\) cannot be used: it must be array/,
    );
  });

  it('may have empty lines, and actions whose value is null', async () => {
    await load();
    const before = await paths();
    put(
      1,
      '',
      { add: null, remove: { path: before[0] } },
      '',
      '  ',
      { protocol: protocol({ readerFeatures: null, writerFeatures: null }) },
      '',
    );
    expect(await paths()).toEqual([]);
  });

  it('names one file by its path in any encoding', async () => {
    await load();
    const [path] = await paths();
    put(1, { remove: { path: path.replace('=', '%3D') } });
    expect(await paths()).toEqual([]);
    const [add] = fixture.actions('events', 0, 'add');
    put(2, { add: { ...add, path: path.replace('=', '%3D') } });
    expect(await paths()).toEqual([path]);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  function protocol(more: object) {
    return {
      minReaderVersion: 3,
      minWriterVersion: 7,
      readerFeatures: ['timestampNtz'],
      writerFeatures: ['timestampNtz'],
      ...more,
    };
  }
  function table(more: object) {
    return domain('dfinery.table', JSON.stringify({ v: 2, writer: '0', table: 'events', ...more }));
  }
  function partitionedBy(...partitionColumns: string[]) {
    const format = { provider: 'parquet', options: {} };
    return { metaData: { id: 'x', format, schemaString: '{}', partitionColumns, configuration: {} } };
  }
});

describe('a Delta log', () => {
  it('is refused when its beginning or an entry is missing, and names the first missing one', async () => {
    await load();
    put(2, { commitInfo: {} });
    put(5, { commitInfo: {} });
    await refused(/_delta_log cannot be used: version 1 is missing/);
    put(1, { commitInfo: {} });
    await refused(/version 3 is missing/);
    rmSync(numbered(0));
    await refused(/version 0 is missing/);
  });

  it('is refused without metadata or protocol', async () => {
    await load();
    const whole = fixture.entry('events', 0);
    for (const kind of ['protocol', 'metaData']) {
      put(0, ...whole.filter((line) => line[kind] === undefined));
      await refused(/a log without protocol or metadata/);
    }
  });

  it('is refused when an entry is removed while it is read', async () => {
    await load();
    const storage = new DiskStorage(fixture.root);
    storage.read = async (path) =>
      path.endsWith('0.json') ? undefined : DiskStorage.prototype.read.call(storage, path);
    await expect(fixture.withTable(() => {}, storage)).rejects.toMatchObject({
      message: expect.stringMatching(/0\.json .*it is gone/),
    });
  });

  it('is read in order to its end, ignoring foreign files', async () => {
    await load();
    const [path] = await paths();
    const [add] = fixture.actions('events', 0, 'add');
    for (let version = 1; version <= 600; version++) put(version, version % 2 === 1 ? { remove: { path } } : { add });
    for (const name of ['00000000000000000601.crc', '601.json', '.00000000000000000601.json.tmp'])
      writeFileSync(inLog(name), 'x');
    expect(await fixture.withTable(({ version }) => version)).toBe(600);
    expect(await paths()).toEqual([path]);
    put(601, { remove: { path } });
    expect(await paths()).toEqual([]);
  });
});

describe('a checkpoint', () => {
  const checkpoint = (since = 0) => fixture.checkpoint(since);
  const pointer = () => JSON.parse(readFileSync(inLog('_last_checkpoint'), 'utf8'));

  it('is found by the pointer, and also when the pointer is wrong or missing', async () => {
    await load();
    await checkpoint();
    rmSync(numbered(0));
    await load(second, 'b');
    const before = await paths();
    expect(before).toHaveLength(2);
    for (const text of ['{', 'null', '[]', '{"version":"0"}', '{"version":-1}', '{"version":7}', '{"size":1}']) {
      writeFileSync(inLog('_last_checkpoint'), text);
      expect(await paths(), text).toEqual(before);
    }
    rmSync(inLog('_last_checkpoint'));
    expect(await paths()).toEqual(before);
  });

  it('is used although the pointer does not name it yet', async () => {
    await load();
    await checkpoint();
    const old = pointer();
    await load(second, 'b');
    await checkpoint();
    expect([old.version, pointer().version]).toEqual([0, 1]);
    writeFileSync(inLog('_last_checkpoint'), JSON.stringify(old));
    for (const version of [0, 1]) rmSync(numbered(version));
    expect(await paths()).toHaveLength(2);
  });

  it('of another writer with fewer or other columns is read', async () => {
    await load();
    await checkpoint();
    const before = await paths();
    const file = numbered(0, 'checkpoint.parquet');
    const own = `SELECT * EXCLUDE (txn, remove), NULL AS sidecar FROM read_parquet(${literal(file)})`;
    const other = `SELECT {'path': 'x', 'sizeInBytes': 1} AS sidecar`;
    const copy = join(fixture.dir, 'copy.parquet');
    await query(':memory:', `COPY (${own} UNION ALL BY NAME ${other}) TO ${literal(copy)} (FORMAT parquet)`);
    writeFileSync(file, readFileSync(copy));
    rmSync(numbered(0));
    expect(await paths()).toEqual(before);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  it('holds every action once, keeps what left the table at that instant or later, and counts its actions', async () => {
    await load();
    const remove = (path: string, deletionTimestamp?: number) => ({ remove: { path, deletionTimestamp } });
    put(1, remove('before', 99), remove('just', 100), remove('later', 101), remove('nobody knows when'));
    await checkpoint(0);
    expect(await fixture.withTable((events) => events.leftAt('events/nobody knows when'))).toBe(0);
    await checkpoint(100);
    const file = literal(numbered(1, 'checkpoint.parquet'));
    const removed = await query(
      ':memory:',
      `SELECT remove.path AS p FROM read_parquet(${file}) WHERE remove IS NOT NULL`,
    );
    expect(removed).toEqual([{ p: 'just' }, { p: 'later' }]);
    const [{ n }] = await query(':memory:', `SELECT count(*)::INT AS n FROM read_parquet(${file})`);
    expect(pointer()).toEqual({ version: 1, size: n });
    const kinds = ['protocol', 'metaData', 'txn', 'add'];
    const counts = kinds.map((kind) => `count(${kind})::INT AS "${kind}"`);
    expect(await query(':memory:', `SELECT ${counts.join(', ')} FROM read_parquet(${file})`)).toEqual([
      { protocol: 1, metaData: 1, txn: 1, add: 1 },
    ]);
  });

  it('does not give the time of the commit whose version it holds', async () => {
    await load();
    await load(second, 'b');
    await checkpoint();
    for (const [path, seconds] of [
      [numbered(0), 3],
      [numbered(1), 5],
      [numbered(1, 'checkpoint.parquet'), 9],
    ] as const) {
      utimesSync(path, seconds, seconds);
    }
    const committedAt = () => fixture.withTable((events) => events.committedAt());
    expect(await committedAt()).toBe(5_000);
    rmSync(numbered(1));
    expect(await committedAt()).toBe(0);
  });

  it('accepts an entry of any length', async () => {
    await load();
    const long = 'x'.repeat(20 * 1024 * 1024);
    put(1, { domainMetadata: { domain: 'theirs', configuration: long, removed: false } });
    await checkpoint();
    for (const version of [0, 1]) rmSync(numbered(version));
    expect(await paths()).toHaveLength(1);
  });
});
