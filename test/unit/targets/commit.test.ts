import { mkdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { Engine } from '../../../src/engine/session/engine.ts';
import { TABLES, type TableName } from '../../../src/table/columns.ts';
import { type Cells, csvOf, on } from '../../support/targets/csv.ts';
import { FILE_TARGETS, FilesFixture, TARGETS, TargetFixture } from '../../support/targets/target-fixture.ts';

const [ONE, TWO, THREE] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
type Day = typeof ONE | typeof TWO | typeof THREE;

let fixture: TargetFixture;
afterEach(() => fixture.close());
const windowOf = (day: Day, ...rows: Cells[]) => fixture.fixture.windowOf(day, ...rows);
/** The rows of the place by key, with these columns. */
const rows = (...columns: string[]) => fixture.read(`SELECT ${['_key', ...columns].join(', ')} FROM events ORDER BY 1`);

describe.each(TARGETS)('a window in %s', (name) => {
  beforeEach(() => {
    fixture = TargetFixture.of(name);
  });

  it('is stored typed and keyed, with its receipt and the cursor', async () => {
    const window = windowOf(
      ONE,
      { id: 'a', n: '1', flag: 'TRUE', tags: 'null', memo: 'x,"y"\n안녕' },
      { id: 'b:1', n: '9007199254740993', df_items_df_price: '1.5', df_items_color: 'red', tags: '["p"]', ...on(TWO) },
    );
    const [commit] = await fixture.store([window]);
    expect(commit).toMatchObject({ windows: 1, rows: 2, rescued: new Map(), idRepeats: 0 });
    expect(commit.columnsAdded).toContain('df_event_name');
    expect(await rows('n', 'flag', 'tags', 'memo', 'df_items_df_price AS p')).toEqual([
      { _key: 'a', n: '1', flag: true, tags: null, memo: 'x,"y"\n안녕', p: null },
      { _key: 'b:1', n: '9007199254740993', flag: null, tags: ['p'], memo: null, p: 1.5 },
    ]);
    const { state } = await fixture.report();
    expect(state.receipts).toMatchObject([{ from: ONE, to: ONE, rows: 2, bytes: window.receipt.bytes }]);
    expect(state.exportState).toEqual({ version: 1, from_date: TWO });
    expect(await fixture.verify()).toEqual([]);
  });

  it('replaces rows of older windows by id, on any date, and keeps rows that it lacks', async () => {
    await fixture.store([
      windowOf(ONE, { id: 'a', n: '1' }, { id: 'b', n: '1' }, { id: 'c', n: '1', ...on(TWO) }),
      windowOf(ONE, { id: 'a', n: '2', ...on(TWO) }, { id: 'c', n: '2.5', extra: 'x' }),
    ]);
    expect(await rows('n', 'extra', '_dfinery_window::INT AS w', 'df_server_datetime::DATE::VARCHAR AS d')).toEqual([
      { _key: 'a', n: 2, extra: null, w: 2, d: TWO },
      { _key: 'b', n: 1, extra: null, w: 1, d: ONE },
      { _key: 'c', n: 2.5, extra: 'x', w: 2, d: ONE },
    ]);
    expect(await fixture.verify()).toEqual([]);
    await fixture.store([windowOf(ONE, { id: 'b', n: '3' }, { id: 'b', n: '4' })]);
    expect(await rows('n')).toMatchObject([{ _key: 'a' }, { _key: 'b', n: 3 }, { _key: 'b#2', n: 4 }, { _key: 'c' }]);
    await fixture.store([windowOf(ONE, { id: 'b', n: '5' })]);
    expect(await rows('n')).toMatchObject([{ _key: 'a' }, { _key: 'b', n: 5 }, { _key: 'c' }]);
    expect(await fixture.verify()).toEqual([]);
  });

  it.each<[string, Cells[]]>([
    ['a date that is new', []],
    ['a date that gives none', [{ id: 'z' }]],
  ])('moves rows between two dates, and from them to %s', async (_, more) => {
    await fixture.store([
      windowOf(
        ONE,
        { id: 'a', ...on(TWO) },
        { id: 'b', ...on(THREE) },
        { id: 'c', ...on(TWO, '11:00:00.000') },
        ...more,
      ),
      windowOf(ONE, { id: 'c' }, { id: 'a', ...on(THREE) }, { id: 'b', ...on(TWO) }),
    ]);
    const dates = await rows('df_server_datetime::DATE::VARCHAR AS d');
    expect(dates.slice(0, 3).map(({ d }) => d)).toEqual([THREE, TWO, ONE]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('without rows moves only the cursor', async () => {
    const [, commit] = await fixture.store([windowOf(ONE, { id: 'a' }), windowOf(TWO)]);
    const nothing = { columnsAdded: [], columnsWidened: [], rescued: new Map(), idRepeats: 0 };
    expect(commit).toEqual({ windows: 1, rows: 0, ...nothing });
    expect(await fixture.keys()).toEqual(['a']);
    expect((await fixture.priorLoads()).state).toMatchObject({ from_date: THREE });
    expect(await fixture.verify()).toEqual([]);
  });

  it('leaves nothing if it is stopped, or if its rows differ from its receipt; the same window is stored after that', async () => {
    const [good, bad] = [windowOf(ONE, { id: 'a' }), windowOf(TWO, { id: 'b', extra: '1' })];
    await fixture.store([good]);
    const before = fixture.files();
    const sink = await fixture.open();
    const wrong = { ...bad, receipt: { ...bad.receipt, rows: 2 } };
    await expect(sink.commit([wrong], fixture.fixture.signal)).rejects.toMatchObject({
      exitCode: 1,
      kind: 'system',
      where: { window: `${TWO}..${TWO}` },
    });
    await expect(sink.commit([bad], AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop');
    await sink.close();
    expect(fixture.files()).toEqual(before);
    expect(await fixture.keys()).toEqual(['a']);
    await fixture.store([bad]);
    expect(await rows('extra')).toEqual([
      { _key: 'a', extra: null },
      { _key: 'b', extra: '1' },
    ]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('never quotes a cell in an error', async () => {
    const window = windowOf(ONE, { id: 'a', n: '5' });
    writeFileSync(window.files[0].path, csvOf([{ id: 'a', n: 'canary-7', ...on(ONE) }]));
    const failure = await fixture.store([window]).catch((error: Error) => error);
    expect(failure).toMatchObject({ exitCode: 1 });
    const { stack, cause } = failure as Error;
    expect(`${JSON.stringify(failure)}${stack}${cause}`).not.toContain('canary');
  });

  it('keeps a complete day complete when it is read again before a clock ends it', async () => {
    const [whole, again] = [windowOf(ONE, { id: 'a' }), windowOf(ONE, { id: 'a' })];
    await fixture.store([whole, { ...again, receipt: { ...again.receipt, covers_to: null } }]);
    expect([...(await fixture.priorLoads()).covered]).toEqual([ONE]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('has the zone of the first load, and no other', async () => {
    const timezone = 'Asia/Seoul';
    await fixture.store([fixture.fixture.window(ONE, csvOf([{ id: 'a', ...on(ONE) }]), timezone)], { timezone });
    expect(await rows('typeof(df_server_datetime) AS t', 'epoch(df_server_datetime)::INT AS e')).toEqual([
      { _key: 'a', t: 'TIMESTAMP WITH TIME ZONE', e: Date.UTC(2026, 0, 1, 1) / 1_000 },
    ]);
    await expect(fixture.open({ timezone: 'UTC' })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/timezone is UTC, but .* was loaded with Asia\/Seoul/),
    });
    await (await fixture.open({ timezone })).close();
  });

  it('adds and widens columns without a change to values', async () => {
    const commits = await fixture.store([
      windowOf(ONE, { id: 'a', n: '1', m: '1', b: 'TRUE' }),
      windowOf(TWO, { id: 'b', n: '2.5', late: '7' }),
      windowOf(THREE, { id: 'c', n: 'x', m: 'text' }),
    ]);
    expect(commits.map(({ columnsWidened }) => columnsWidened)).toEqual([
      [],
      [{ name: 'n', from: 'long', to: 'double' }],
      expect.arrayContaining([{ name: 'n', from: 'double', to: 'string' }]),
    ]);
    expect(await rows('n', 'b', 'late', 'm')).toEqual([
      { _key: 'a', n: '1', b: true, late: null, m: '1' },
      { _key: 'b', n: '2.5', b: null, late: '7', m: null },
      { _key: 'c', n: 'x', b: null, late: null, m: 'text' },
    ]);
    const messages = fixture.fixture.log
      .filter(({ event }) => event === 'schema.changed')
      .map(({ message }) => message);
    expect(messages).toEqual(
      expect.arrayContaining([
        'column n changes from long to double: first such cell 9.9',
        'column n changes from double to string: first such cell a',
      ]),
    );
    expect(await fixture.verify()).toEqual([]);
  });

  it('keeps the cells of new columns in _rescued under freeze, with every value', async () => {
    await fixture.store([windowOf(ONE, { id: 'a', n: '1' })]);
    const late = windowOf(TWO, { id: 'b', n: '2', new: 'v', df_items_x: '7' }, { id: 'c', n: 'text', new: 'null' });
    const [{ rescued }] = await fixture.store([late], { schemaMode: 'freeze' });
    expect(Object.fromEntries(rescued)).toEqual({ n: 1, new: 2, df_items_x: 1 });
    const stored = await rows('n', '_rescued AS r');
    expect(stored.map(({ _key, n, r }) => [_key, n, r && JSON.parse(String(r))])).toEqual([
      ['a', '1', null],
      ['b', '2', { new: 'v', df_items_x: '7' }],
      // Beside a text the text `null` is one, too.
      ['c', null, { n: 'text', new: 'null' }],
    ]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('has an event_logs row an event, with the lowest position, and an event_items row an item', async () => {
    const window = windowOf(
      ONE,
      { id: 'p:10', amount: '30', df_items_df_price: '1', df_items_color: 'null' },
      { id: 'p:2', amount: '20', df_items_df_price: '2', df_items_tags: '["a"]' },
      { id: 'q', amount: '5', df_items_color: 'null', df_items_tags: 'null' },
      { id: 'r', df_items_df_price: 'free' },
      { id: 's:x', df_items_color: 'red' },
      { id: 's', amount: '6' },
      { id: 's', amount: '7' },
      { amount: '8' },
      { amount: '9' },
    );
    await fixture.store([window]);
    const logs = await fixture.read('SELECT df_event_log_id AS log, amount FROM event_logs ORDER BY log, amount');
    expect(logs).toEqual([
      { log: 'p', amount: '20' },
      { log: 'q', amount: '5' },
      { log: 'r', amount: null },
      { log: 's', amount: '6' },
      { log: 's:x', amount: null },
      { log: null, amount: '8' },
      { log: null, amount: '9' },
    ]);
    const items = 'SELECT _key, df_price, color, tags, item_position AS n FROM event_items ORDER BY 1';
    expect(await fixture.read(items)).toEqual([
      { _key: 'p:10', df_price: 1, color: 'null', tags: null, n: '10' },
      { _key: 'p:2', df_price: 2, color: null, tags: ['a'], n: '2' },
      { _key: 'r', df_price: null, color: null, tags: null, n: null },
      { _key: 's:x', df_price: null, color: 'red', tags: null, n: null },
    ]);
    await fixture.store([
      windowOf(TWO, {
        id: 't',
        df_items_df_unified_id: 'x',
        df_items_item_position: '3',
        df_items_COLOR: 'z',
        late: '1',
      }),
    ]);
    const columnsOf = async (table: string) => Object.keys((await fixture.read(`SELECT * FROM ${table} LIMIT 1`))[0]);
    const ofItems = await columnsOf('event_items');
    expect(ofItems).toEqual(
      expect.arrayContaining(['df_items_df_unified_id', 'df_items_item_position', 'COLOR_2', 'tags']),
    );
    expect(ofItems).not.toContain('late');
    const ofLogs = await columnsOf('event_logs');
    expect(ofLogs).toContain('late');
    expect(ofLogs.filter((column) => column === '_key' || column.startsWith('df_items'))).toEqual([]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('updates the row of an event in event_logs, on whatever day it is and whichever is read again', async () => {
    const logs = () =>
      fixture.read('SELECT df_event_log_id AS id, df_server_datetime::DATE::VARCHAR AS d FROM event_logs ORDER BY 1');
    const late = windowOf(TWO, { id: 'e:1' }, { id: 'f' });
    await fixture.store([late]);
    await fixture.store([windowOf(ONE, { id: 'e:0' }, { id: 'x' })]);
    const first = [
      { id: 'e', d: ONE },
      { id: 'f', d: TWO },
      { id: 'x', d: ONE },
    ];
    expect(await logs()).toEqual(first);
    await fixture.store([late]);
    expect(await logs()).toEqual(first);
    await fixture.store([windowOf(ONE, { id: 'e:0', df_event_log_id: 'other' }, { id: 'x' })]);
    expect(await logs()).toEqual([{ id: 'e', d: TWO }, first[1], { id: 'other', d: ONE }, first[2]]);
    expect(await fixture.verify()).toEqual([]);
  });

  it('keeps rows without a date, and replaces them', async () => {
    const undated = (n: string) =>
      windowOf(ONE, { id: 'a', n, df_server_datetime: '', df_correction_datetime: '' }, { id: 'b', n });
    await fixture.store([undated('1'), undated('2')]);
    expect(await rows('n')).toEqual([
      { _key: 'a', n: '2' },
      { _key: 'b', n: '2' },
    ]);
    expect(await fixture.verify()).toEqual([]);
  });
});

describe.each(TARGETS)('%s with little memory', (name) => {
  /** From now on each engine says that memory is short, until it uses one thread; returns how often it said so. */
  function runOutOfMemory(): () => number {
    const small = new WeakSet<Engine>();
    const { run, rows } = Engine.prototype;
    let count = 0;
    const check = (engine: Engine, sql: string) => {
      if (!/^\s*(COPY|INSERT INTO (events|event_items)\b)/.test(sql) || small.has(engine)) return;
      count++;
      throw new Error('Out of Memory Error: could not allocate block');
    };
    vi.spyOn(Engine.prototype, 'run').mockImplementation(async function (this: Engine, sql, values) {
      if (sql === 'SET threads = 1') small.add(this);
      check(this, sql);
      return run.call(this, sql, values);
    });
    vi.spyOn(Engine.prototype, 'rows').mockImplementation(async function (this: Engine, sql, values) {
      check(this, sql);
      return rows.call(this, sql, values);
    });
    return () => count;
  }

  it('stores the same rows with one thread', async () => {
    const item = (log: string, position: number, more: Cells = {}): Cells => {
      return { id: `${log}:${position}`, df_event_log_id: log, df_items_price: String(position), ...more };
    };
    /** Two days, of which the first is read again: a row changes, an event moves to the next day, a number becomes a text. */
    const stored = async () => {
      await fixture.store([
        windowOf(ONE, item('a', 0), item('a', 1), item('b', 0, { n: '1' }), item('b', 0)),
        windowOf(TWO, item('c', 1), item('c', 0), { id: '', n: '5' }),
        windowOf(ONE, item('a', 0, { n: 'text' }), item('a', 1, on(TWO)), item('d', 7)),
      ]);
      expect(await fixture.verify()).toEqual([]);
      return () => Promise.all(TABLES.map((table) => fixture.read(`SELECT * FROM ${table} ORDER BY ALL`)));
    };
    fixture = TargetFixture.of(name);
    const usual = await (await stored())();
    fixture.close();
    fixture = TargetFixture.of(name);
    const refused = runOutOfMemory();
    const read = await stored().finally(() => vi.restoreAllMocks());
    expect(refused()).toBeGreaterThan(0);
    expect(await read()).toEqual(usual);
    expect(usual.map((all) => all.length)).toEqual([8, 7, 5]);
  });
});

describe.each(FILE_TARGETS)('the derived tables of %s', (name) => {
  let files: FilesFixture;
  beforeEach(() => {
    files = new FilesFixture(name);
    fixture = files;
  });
  const tables = (...names: TableName[]) => ({ tables: names });
  const item = (day: Day, id: string) => windowOf(day, { id: `${id}:1`, df_items_x: '1' });
  const counts = () =>
    Promise.all(TABLES.map(async (table) => Number((await files.read(`SELECT count(*) AS n FROM ${table}`))[0].n)));

  it('are created from the existing days when they are first requested, and stay complete afterwards', async () => {
    await files.store([item(ONE, 'a')], tables());
    expect((await files.snapshot())?.state.tables).toEqual(['events']);
    await files.store([item(TWO, 'b')], tables('event_items'));
    expect((await files.snapshot())?.state.tables).toEqual(['events', 'event_items']);
    await files.store([item(THREE, 'c')], tables('event_logs'));
    await files.store([item(THREE, 'd')], tables());
    expect(await counts()).toEqual([4, 4, 4]);
    expect(await files.verify()).toEqual([]);
  });
});

it.each(FILE_TARGETS)('%s replaces rows in a folder whose relative path begins as a glob pattern', async (name) => {
  const files = new FilesFixture(name);
  fixture = files;
  const before = process.cwd();
  process.chdir(files.fixture.dir);
  try {
    mkdirSync('[a]');
    const place = join('[a]', basename(files.place));
    for (const memo of ['old', 'new']) await files.store([windowOf(ONE, { id: 'a', memo })], { place });
    const maintenance = await files.target.maintenance();
    expect(await maintenance.verify(place, files.options)).toEqual([]);
    expect((await maintenance.report(place, files.options)).rows).toBe(1);
  } finally {
    process.chdir(before);
  }
});
