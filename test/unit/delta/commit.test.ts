import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf, on } from '../../support/targets/csv.ts';
import { DeltaFixture } from '../../support/targets/delta.ts';
import { verifyDelta } from '../../support/targets/files.ts';

let fixture: DeltaFixture;
beforeEach(() => {
  fixture = new DeltaFixture();
});
afterEach(() => fixture.close());

const first = '2026-01-01';
const second = '2026-01-02';
const verify = () => verifyDelta(fixture.lakeOptions);
const TABLES = ['events', 'event_items', 'event_logs'] as const;

describe('a window', () => {
  it('is one commit: protocol and schema in the first, files, receipt, cursor and transaction in each', async () => {
    await fixture.store([fixture.window(first, csvOf([{ id: 'a', n: '1', ...on(first) }]))]);
    const of = (name: string) => fixture.actions('events', 0, name);
    expect(of('protocol')).toEqual([
      {
        minReaderVersion: 3,
        minWriterVersion: 7,
        readerFeatures: ['timestampNtz'],
        writerFeatures: ['domainMetadata', 'timestampNtz'],
      },
    ]);
    expect(of('txn')).toMatchObject([{ appId: 'dfinery-elt', version: 1 }]);
    expect(of('add')).toMatchObject([{ partitionValues: { event_date: first }, dataChange: true }]);
    const domains = new Map(of('domainMetadata').map((line) => [line.domain, JSON.parse(String(line.configuration))]));
    expect(domains.get('dfinery.cursor')).toMatchObject({ from_date: second });
    expect(domains.get('dfinery.window.1')).toMatchObject({ from: first, rows: 1, window: 1 });
    await fixture.store([fixture.window(second, csvOf([{ id: 'b', n: '2', ...on(second) }]))]);
    expect([...fixture.actions('events', 1, 'protocol'), ...fixture.actions('events', 1, 'metaData')]).toEqual([]);
    expect(await fixture.read('SELECT _key, n, event_date FROM events ORDER BY 1')).toEqual([
      { _key: 'a', n: '1', event_date: first },
      { _key: 'b', n: '2', event_date: second },
    ]);
    expect(await verify()).toEqual([]);
  });

  it('has instants without a reader feature if a zone is configured', async () => {
    const csv = csvOf([{ id: 'a', ...on(first) }]);
    await fixture.store([fixture.window(first, csv, 'Asia/Seoul')], { timezone: 'Asia/Seoul' });
    const [protocol] = fixture.actions('events', 0, 'protocol');
    expect(protocol).toMatchObject({ readerFeatures: [], writerFeatures: ['domainMetadata'] });
    const { schema } = fixture.replay('events');
    expect(schema.find(({ name }) => name === 'df_server_datetime')?.type).toBe('timestamp');
    await expect(fixture.openLake()).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('timezone'),
    });
  });

  it('keeps one receipt a day, however often the day is read again', async () => {
    const window = () => fixture.window(first, csvOf([{ id: 'a', ...on(first) }]));
    await fixture.store([window(), window(), window()]);
    const last = fixture.actions('events', 2, 'domainMetadata');
    expect(last.filter(({ removed }) => removed === true).map(({ domain }) => domain)).toEqual(['dfinery.window.2']);
  });

  it('of rows without a date is a file whose partition has no value, and is replaced there', async () => {
    const undated = (n: string) =>
      csvOf([
        { id: 'a', n, df_server_datetime: '', df_correction_datetime: '' },
        { id: 'b', n, ...on(first) },
      ]);
    await fixture.store([fixture.window(first, undated('1')), fixture.window(first, undated('2'))], { tables: TABLES });
    const dates = [...fixture.replay('events').files.values()].map(({ partitionValues }) => partitionValues);
    expect(dates).toEqual(expect.arrayContaining([{ event_date: null }, { event_date: first }]));
    expect(dates).toHaveLength(2);
    expect(await fixture.read('SELECT _key, n, event_date::VARCHAR AS d FROM events ORDER BY 1')).toEqual([
      { _key: 'a', n: '2', d: null },
      { _key: 'b', n: '2', d: first },
    ]);
    expect(await verifyDelta(fixture.lakeOptions)).toEqual([]);
  });

  it('has its receipt in the state of events alone, outside the commit', async () => {
    const window = fixture.window(first, csvOf([{ id: 'a', ...on(first) }]));
    await fixture.store([window], { tables: TABLES });
    const receipts = (table: string) =>
      fixture
        .actions(table, 0, 'domainMetadata')
        .filter(({ domain }) => domain === 'dfinery.window.1')
        .map(({ configuration }) => JSON.parse(String(configuration)));
    const { id, sha256, rows } = window.receipt;
    expect(receipts('events')).toMatchObject([{ id, sha256, rows, from: first, window: 1 }]);
    expect(receipts('event_logs')).toEqual([]);
    for (const table of TABLES) expect(JSON.stringify(fixture.actions(table, 0, 'commitInfo'))).not.toContain(sha256);
  });
});

describe('columns', () => {
  it('change metadata alone if they are new; a widened one rewrites the files that hold values of it', async () => {
    await fixture.store([
      fixture.window(first, csvOf([{ id: 'a', n: '1', ...on(first) }])),
      fixture.window(second, csvOf([{ id: 'b', m: '1', ...on(second) }])),
    ]);
    expect(fixture.actions('events', 1, 'remove')).toEqual([]);
    await fixture.store([fixture.window('2026-01-03', csvOf([{ id: 'c', n: 'text', ...on('2026-01-03') }]))]);
    const removed = fixture.actions('events', 2, 'remove');
    expect(removed.map(({ partitionValues }) => partitionValues)).toEqual([{ event_date: first }]);
    expect(await fixture.read('SELECT _key, n, m FROM events ORDER BY 1')).toEqual([
      { _key: 'a', n: '1', m: null },
      { _key: 'b', n: null, m: '1' },
      { _key: 'c', n: 'text', m: null },
    ]);
    expect(await verify()).toEqual([]);
  });

  it('have no name that a reader refuses, and no two that differ only in case', async () => {
    const odd = { 'a b': '1', 'a,b': '2', 'A=B': '3', 'x{}()': '4', 'line\nend': '5', _KEY: '6' };
    await fixture.store([fixture.window(first, csvOf([{ id: 'a', ...odd, ...on(first) }]))]);
    const names = fixture.replay('events').schema.map(({ name }) => name);
    expect(names.filter((name) => /[ ,;{}()\n\t=]/.test(name))).toEqual([]);
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(names.length);
    expect(names).toEqual(expect.arrayContaining(['A_B', 'a_b_2', 'a_b_3', 'x____', 'line_end', '_KEY_2']));
  });
});

describe('statistics', () => {
  it('hold rows, nulls, and ranges of system datetimes and of our own numbers, and no other value', async () => {
    const rows = [
      {
        id: 'geheim-1',
        n: '9007199254740993',
        d: '0.5',
        when: '2026-01-01 00:00:00.250',
        name: 'erna-4711',
        ...on(first),
      },
      { id: 'geheim-2', n: '-3', d: '', when: '', name: '', tags: '["erna-4711"]', ...on(first) },
    ];
    await fixture.store([fixture.window(first, csvOf(rows))], { tables: TABLES });
    const [add] = fixture.actions('events', 0, 'add');
    const text = String(add.stats);
    const time = '2026-01-01T10:00:00.000';
    const range = { _dfinery_window: 1, df_correction_datetime: time, df_server_datetime: time };
    expect(JSON.parse(text)).toEqual({
      numRecords: 2,
      minValues: range,
      maxValues: range,
      nullCount: expect.objectContaining({ _key: 0, n: 0, d: 1, name: 1, tags: 1 }),
    });
    for (const table of TABLES) {
      const log = JSON.stringify(fixture.entry(table, 0));
      expect(log).not.toMatch(/erna-4711|geheim|9007199254740993/);
    }
  });
});

describe('a target that is foreign or damaged', () => {
  it('is refused with a message and left unchanged', async () => {
    await fixture.store([fixture.window(first, csvOf([{ id: 'a', ...on(first) }]))]);
    const refused = async (message: RegExp) => {
      const before = fixture.files();
      await expect(fixture.openLake()).rejects.toMatchObject({
        kind: 'config',
        message: expect.stringMatching(message),
      });
      expect(fixture.files()).toEqual(before);
    };
    const feature = {
      protocol: {
        minReaderVersion: 3,
        minWriterVersion: 7,
        readerFeatures: ['deletionVectors'],
        writerFeatures: ['deletionVectors', 'domainMetadata'],
      },
    };
    const broken: [unknown, RegExp][] = [
      [feature, /deletionVectors/],
      [{ protocol: { minReaderVersion: 1, minWriterVersion: 2 } }, /protocol 1\/2/],
      [{ add: { path: '../../etc/passwd', partitionValues: {}, size: 1, dataChange: true } }, /outside the table/],
      [{ add: { path: 's3%3A//other/x', partitionValues: {}, size: 1, dataChange: true } }, /outside the table/],
      [{ add: { path: 'x', partitionValues: {}, size: -1, dataChange: true } }, /add\/size/],
      [{ txn: { appId: 1, version: 'x' } }, /txn/],
      ['no object', /no object/],
    ];
    for (const [line, message] of broken) {
      fixture.append('events', 1, line);
      await refused(message);
      rmSync(join(fixture.root, 'events/_delta_log/00000000000000000001.json'));
    }
    fixture.append('events', 2, { commitInfo: {} });
    await refused(/version 1 is missing/);
  });

  it('may have actions of a later protocol, which are ignored', async () => {
    await fixture.store([fixture.window(first, csvOf([{ id: 'a', ...on(first) }]))]);
    fixture.append('events', 1, { somethingNew: { x: 1 } });
    await fixture.store([fixture.window(second, csvOf([{ id: 'b', ...on(second) }]))]);
    expect(fixture.versions()).toBe(3);
    expect(await verify()).toEqual([]);
  });
});

describe('every table', () => {
  it.each([
    ['times of the wall clock', undefined, ['timestampNtz']],
    ['instants', 'Asia/Seoul', []],
  ])('declares its datetimes as %s', async (_name, timezone, features) => {
    const rows = csvOf([{ id: 'a:0', df_items_x: '1', ...on(first) }]);
    await fixture.store([fixture.window(first, rows, timezone)], { tables: TABLES, timezone });
    for (const table of TABLES) {
      const [protocol] = fixture.actions(table, 0, 'protocol');
      expect(protocol.readerFeatures, table).toEqual(features);
      const types = fixture.replay(table).schema.map(({ type }) => type);
      expect(types.includes('timestamp_ntz'), table).toBe(timezone === undefined);
    }
  });
});
