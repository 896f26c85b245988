import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Difference } from '../../../src/table/differences.ts';
import { literal } from '../../../src/types/sql.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { csvOf, on } from '../../support/targets/duckdb.ts';
import { purgeDelta, verifyDelta } from '../../support/targets/files.ts';
import { query } from '../../support/targets/query.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

type Fields = Readonly<Record<string, unknown>>;
const first = '2026-01-01';
const second = '2026-01-02';
const ALL = ['events', 'event_items', 'event_logs'] as const;

/** Two events of three rows: `a` has two items, `b` none. */
const load = (tables: readonly (typeof ALL)[number][] = ['events']) =>
  fixture.store(
    [
      fixture.window(
        first,
        csvOf([
          { id: 'a:1', n: '1', df_items_x: '1', ...on(first) },
          { id: 'a:2', n: '2', df_items_x: '2', ...on(first) },
          { id: 'b', n: '3', ...on(first) },
        ]),
      ),
    ],
    { tables },
  );

const found = async () => (await verifyDelta(fixture.lakeOptions)).map(({ check, message }) => [check, message]);
const rows = (message: string): [Difference['check'], string][] => [['rows', message]];

/** As somebody else might, writes the log's last file of a table once more, changed. */
function change(table: string, how: (add: { tags: Fields; stats: Fields } & Fields) => Fields): void {
  const version = fixture.versions(table);
  const add = [...fixture.replay(table).files.values()].at(-1);
  const changed = how({ ...add, tags: add?.tags as Fields, stats: JSON.parse(String(add?.stats)) });
  fixture.append(table, version, { add: { ...changed, stats: JSON.stringify(changed.stats) } });
}

/** The last file of a table. */
function lastFile(table: string) {
  const path = String([...fixture.replay(table).files.keys()].at(-1));
  return { path, file: join(fixture.root, table, path) };
}

/** Writes what a query makes of the last file of a table in its place; the log knows its size, and nothing of its bytes. */
async function rewrite(table: string, select: string): Promise<string> {
  const { path, file } = lastFile(table);
  const copy = join(fixture.dir, 'copy.parquet');
  const from = `read_parquet(${literal(file)}, hive_partitioning = false)`;
  await query(':memory:', `COPY (SELECT ${select} FROM ${from}) TO ${literal(copy)} (FORMAT parquet)`);
  writeFileSync(file, readFileSync(copy));
  const { size } = statSync(file);
  change(table, ({ tags: { 'dfinery.sha256': _, ...tags }, ...add }) => ({ ...add, tags, size }));
  return path;
}

describe('verify of Delta tables', () => {
  it('names every file that is missing or has another length, of every table, and looks at the others all the same', async () => {
    await load(ALL);
    const [events, items, logs] = ALL.map((name) => ({ name, ...lastFile(name) }));
    rmSync(events.file);
    const { size } = statSync(items.file);
    writeFileSync(items.file, 'x');
    const bytes = readFileSync(logs.file);
    bytes[20] ^= 1;
    writeFileSync(logs.file, bytes);
    expect((await found()).sort()).toEqual([
      ['files', `event_items/${items.path} is not the file that was written (1 bytes, was ${size})`],
      ['files', `event_logs/${logs.path} is not the file that was written`],
      ['files', `events/${events.path} is missing`],
    ]);
  });

  it('names rows of a window without a receipt, and more rows than its receipt has', async () => {
    await load();
    const [receipt] = fixture
      .actions('events', 0, 'domainMetadata')
      .filter(({ domain }) => domain === 'dfinery.window.1');
    const domain = (configuration: unknown, removed: boolean) =>
      fixture.append('events', fixture.versions(), { domainMetadata: { ...receipt, configuration, removed } });
    const kept = JSON.parse(String(receipt.configuration));
    domain(JSON.stringify({ ...kept, rows: 2 }), false);
    expect(await found()).toEqual(rows(`window 1 (${first} to ${first}) should have 3 rows of its 2, and has 3`));
    domain(JSON.stringify({ ...kept, rows: 4 }), false);
    expect(await found()).toEqual([]);
    domain('{}', true);
    expect((await found()).filter(([check]) => check === 'rows')).toEqual(
      rows('3 rows belong to window 1, which has no receipt'),
    );
  });

  it('names rows whose window is not the one that the log says, window by window', async () => {
    await load();
    await fixture.store([fixture.window(second, csvOf([{ id: 'b', ...on(first, '11:00:00.000') }]))]);
    await fixture.store([fixture.window(first, csvOf([{ id: 'b', ...on(first) }]))]);
    const told = (windows: string) =>
      change('events', (add) => ({ ...add, tags: { ...add.tags, 'dfinery.windows': windows } }));
    told('{"0":1}');
    expect(await found()).toEqual(rows('1 row belongs to window 0, which has no receipt'));
    told('{"1":1}');
    expect(await found()).toEqual([
      ['rows', `window 1 (${first} to ${first}) should have 3 rows of its 3, and has 2`],
      ['rows', `window 3 (${first} to ${first}) should have 0 rows of its 1, and has 1`],
    ]);
  });

  it('names a file whose number of rows is not the one that the log says', async () => {
    await load();
    change('events', (add) => ({ ...add, stats: { ...add.stats, numRecords: 4 } }));
    expect(await found()).toEqual([['files', `events/${lastFile('events').path} has 3 rows instead of 4`]]);
  });

  it('names columns that the schema does not have so', async () => {
    await load();
    const [metaData] = fixture.actions('events', 0, 'metaData');
    const { fields } = JSON.parse(String(metaData.schemaString));
    const others = (change: (field: { name: string }) => object[]) => {
      const schemaString = JSON.stringify({ type: 'struct', fields: fields.flatMap(change) });
      fixture.append('events', fixture.versions(), { metaData: { ...metaData, schemaString } });
    };
    others((field) => (field.name === 'n' ? [{ ...field, type: 'double' }] : [field]));
    expect(await found()).toEqual([['columns', 'events: column n should be "long" in the log, and is "double"']]);
    others((field) => (field.name === 'n' ? [] : [field]));
    expect(await found()).toEqual([['columns', 'events: column n should be "long" in the log, and is absent']]);
  });

  it('names rows without a key, and keys of more than one row', async () => {
    await load();
    await rewrite('events', `* REPLACE ('same' AS _key)`);
    expect(await found()).toEqual([['keys', '1 keys occur more than once']]);
    await rewrite('events', '* REPLACE (CAST(NULL AS VARCHAR) AS _key)');
    expect(await found()).toEqual([['keys', '3 rows have no _key']]);
  });

  it('names another table that has more or fewer rows than follow from the events', async () => {
    await load(ALL);
    expect(await found()).toEqual([]);
    for (const [name, { path }] of [
      ['event_items', lastFile('event_items')],
      ['event_logs', lastFile('event_logs')],
    ] as const) {
      fixture.append(name, 1, { remove: { path, dataChange: true } });
    }
    expect(await found()).toEqual([
      ['rows', 'event_items should have 2 rows, and has 0'],
      ['rows', 'event_logs should have 2 rows, and has 0'],
    ]);
  });

  it('counts an event once whose rows have different dates, and each row that belongs to none', async () => {
    const day = (date: string, ...ids: string[]) =>
      csvOf(ids.map((id) => ({ id, ...on(date), ...(id === '' && { df_event_log_id: '' }) })));
    await fixture.store(
      [fixture.window(first, day(first, 'a:1', '', 'b')), fixture.window(second, day(second, 'a:2', ''))],
      {
        tables: ALL,
      },
    );
    expect(await fixture.read('SELECT count(*)::INT AS n FROM event_logs')).toEqual([{ n: 4 }]);
    expect(await found()).toEqual([]);
  });

  it('finds nothing where all events were purged', async () => {
    await load(ALL);
    await purgeDelta(fixture.lakeOptions, { column: 'df_unified_id', ids: ['u-1'] });
    expect((await fixture.current('events')).files.size).toBe(0);
    expect(await found()).toEqual([]);
  });

  it('names another table that follows from an older version, and one that lost a race', async () => {
    await load(ALL);
    const of = (table: string) =>
      fixture.actions(table, 0, 'domainMetadata').filter(({ domain }) => domain === 'dfinery.table')[0];
    const told = (more: object) => {
      const domain = of('event_items');
      const configuration = JSON.stringify({ ...JSON.parse(String(domain.configuration)), ...more });
      fixture.append('event_items', fixture.versions('event_items'), { domainMetadata: { ...domain, configuration } });
    };
    told({ source: 7 });
    const stale = rows('event_items does not follow from the events that are there: sync again');
    expect(await found()).toEqual(stale);
    told({});
    expect(await found()).toEqual([]);
    told({ source_change_id: 'other' });
    expect(await found()).toEqual(stale);
  });

  it('is refused where there is no table, and when it is stopped', async () => {
    await expect(verifyDelta(fixture.lakeOptions)).rejects.toMatchObject({
      kind: 'config',
      message: `${fixture.root} holds no table of this program: give another place.`,
    });
    await load();
    const stopped = AbortSignal.abort(new Error('stopped'));
    await expect(verifyDelta({ ...fixture.lakeOptions, signal: stopped })).rejects.toThrow('stopped');
  });
});
