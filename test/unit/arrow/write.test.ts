import { spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { RecordBatchReader, tableFromIPC } from 'apache-arrow';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.ts';
import type { ColumnType } from '../../../src/cells/types/type.ts';
import type { Window } from '../../../src/extract/window.ts';
import { ownerText } from '../../support/processes/lock-owner.ts';
import { ArrowFixture, plainRows, streamedColumns } from '../../support/targets/arrow.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';

let fixture: ArrowFixture;
beforeEach(() => {
  fixture = new ArrowFixture();
});
afterEach(() => fixture.close());

const typesOf = () =>
  Object.fromEntries(fixture.table().schema.fields.map((field) => [field.name, String(field.type)]));

describe('an Arrow stream', () => {
  it('has typed columns, event names as plain texts, and every value', async () => {
    const csv = csvOf([
      {
        id: 'a',
        n: '9007199254740993',
        x: '1.5',
        b: 'TRUE',
        d: '2026-01-02',
        l: '["p","안녕, \\"x\\""]',
        q: '[1,null]',
      },
      { id: 'b', memo: 'a text of more than twelve bytes, "안녕"', l: 'null', df_event_name: '회원가입' },
      { id: 'c', b: 'FALSE', n: '-1', memo: 'short', df_event_name: '' },
    ]);
    const result = await fixture.write([fixture.window('2026-01-01', csv)]);
    expect(result).toMatchObject({ rows: 3 });
    expect(typesOf()).toMatchObject({
      _key: 'Utf8',
      df_event_name: 'Utf8',
      df_server_datetime: 'Timestamp<MICROSECOND>',
      n: 'Int64',
      x: 'Float64',
      b: 'Bool',
      d: 'Date32<DAY>',
      l: 'List<Utf8>',
      q: 'List<Int64>',
      _rescued: 'Utf8',
    });
    const rows = plainRows(fixture.table());
    expect(rows.map(({ _key, n, x, b, l, q, memo, df_event_name: e }) => ({ _key, n, x, b, l, q, memo, e }))).toEqual([
      {
        _key: 'a',
        n: '9007199254740993',
        x: 1.5,
        b: true,
        l: ['p', '안녕, "x"'],
        q: ['1', null],
        memo: null,
        e: 'df_login',
      },
      {
        _key: 'b',
        n: null,
        x: null,
        b: null,
        l: null,
        q: null,
        memo: 'a text of more than twelve bytes, "안녕"',
        e: '회원가입',
      },
      { _key: 'c', n: '-1', x: null, b: false, l: null, q: null, memo: 'short', e: null },
    ]);
    const field = fixture.table().schema.fields.find(({ name }) => name === 'n');
    expect(Object.fromEntries(field?.metadata ?? [])).toEqual({ source: 'n', group: 'custom', type: 'long' });
  });

  it('has one schema over all windows, found before the first row is sent', async () => {
    const day = (n: number, more: Cells) => fixture.window(`2026-01-0${n}`, csvOf([{ id: `r${n}`, ...more }]));
    async function* windows(): AsyncGenerator<Window> {
      for (const window of [day(1, { n: '1.50' }), day(2, { n: 'x', late: 'TRUE' }), day(3, { n: '7' })]) {
        yield window;
        // The one who made the window lets go of its files when the next is asked for.
        for (const { path } of window.files) rmSync(path);
      }
    }
    await fixture.write(windows());
    expect(typesOf()).toMatchObject({ n: 'Utf8', late: 'Bool' });
    const rows = plainRows(fixture.table()).map(({ _key, n, late }) => ({ _key, n, late }));
    expect(rows).toEqual([
      { _key: 'r1', n: '1.5', late: null },
      { _key: 'r2', n: 'x', late: true },
      { _key: 'r3', n: '7', late: null },
    ]);
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('dfinery-arrow-'))).toEqual([]);
  });

  it('has the pinned schema and rescues what does not fit it', async () => {
    const pinned = new Map([
      ['n', 'long' as const],
      ['never', 'date' as const],
    ]);
    const windows = [
      fixture.window('2026-01-01', csvOf([{ id: 'a', n: '1', other: 'x' }])),
      fixture.window('2026-01-02', csvOf([{ id: 'b', n: '1.5' }])),
    ];
    const result = await fixture.write(windows, { pinned });
    expect(typesOf()).toMatchObject({ n: 'Int64', never: 'Date32<DAY>' });
    expect(typesOf()).not.toHaveProperty('other');
    expect(plainRows(fixture.table()).map(({ _key, n, _rescued }) => ({ _key, n, _rescued }))).toEqual([
      { _key: 'a', n: '1', _rescued: '{"other":"x"}' },
      { _key: 'b', n: null, _rescued: '{"n":"1.5"}' },
    ]);
    expect(Object.fromEntries(result.rescued)).toEqual({ other: 1, n: 1 });
  });

  it('has batches of bounded size, with rows in the order of the export', async () => {
    const rows = Array.from({ length: 70_000 }, (_, i) => ({
      id: `r${i}`,
      df_event_name: i < 69_000 ? 'early' : 'late',
    }));
    await fixture.write([fixture.window('2026-01-01', csvOf(rows))]);
    const sizes = [...RecordBatchReader.from(readFileSync(fixture.out))].map((batch) => batch.numRows);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(15_360);
    const names = fixture.table().getChild('df_event_name');
    expect([names?.get(0), names?.get(69_999), names?.length]).toEqual(['early', 'late', 70_000]);
    expect(fixture.table().getChild('_key')?.get(69_999)).toBe('r69999');
  });

  it('has its schema also without rows', async () => {
    expect(await fixture.write([])).toMatchObject({ rows: 0 });
    expect(fixture.table().schema.fields.map(({ name }) => name)).toContain('df_event_name');
  });

  it('sends a row once when two windows share a day', async () => {
    const shared = (id: string, n: string) => ({ id, n });
    const first = fixture.window('2026-01-01', csvOf([shared('a', '1'), shared('b', '1')]));
    const open = { ...first, receipt: { ...first.receipt, to: '2026-01-02' } };
    await fixture.write([open, fixture.window('2026-01-02', csvOf([shared('b', '2'), shared('c', '2')]))]);
    expect(plainRows(fixture.table()).map(({ _key, n }) => `${_key}${n}`)).toEqual(['a1', 'b1', 'c2']);
  });

  it('sends a row once when the next window begins within a window that completes no day', async () => {
    const first = fixture.window('2026-01-01', csvOf([{ id: 'a' }, { id: 'b' }]));
    const open = { ...first, receipt: { ...first.receipt, covers_to: null } };
    await fixture.write([open, fixture.window('2026-01-01', csvOf([{ id: 'b' }, { id: 'c' }]))]);
    expect(plainRows(fixture.table()).map(({ _key }) => _key)).toEqual(['a', 'b', 'c']);
  });

  it('numbers repeated keys and creates missing ones', async () => {
    await fixture.write([fixture.window('2026-01-01', csvOf([{ id: 'a' }, { id: 'a' }, { n: '1' }]))]);
    const keys = plainRows(fixture.table()).map(({ _key }) => String(_key));
    expect(keys.slice(0, 2)).toEqual(['a', 'a#2']);
    expect(keys[2]).toMatch(/^hash:[0-9a-f]{64}$/);
  });
});

describe('the reader of a stream', () => {
  const many = () =>
    fixture.window('2026-01-01', csvOf(Array.from({ length: 100_000 }, (_, i) => ({ id: `a-rather-long-id-${i}` }))));

  it('sets the pace of the writer', async () => {
    const out = new PassThrough({ highWaterMark: 1024 });
    let isOver = false;
    const writing = fixture.write([many()], { out }).finally(() => {
      isOver = true;
    });
    const parts: Buffer[] = [];
    let most = 0;
    while (!isOver || out.readableLength > 0) {
      const part: Buffer | null = out.read();
      if (part !== null) parts.push(part);
      most = Math.max(most, out.writableLength);
      await (part === null ? setTimeout(1) : setImmediate());
    }
    expect((await writing).rows).toBe(100_000);
    expect(tableFromIPC(Buffer.concat(parts)).numRows).toBe(100_000);
    expect(most).toBeLessThan(40_000_000);
    expect(out.writableEnded).toBe(false);
  });

  it('may close the stream early', async () => {
    const out = new Writable({
      write(_part, _encoding, done) {
        done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }));
      },
    });
    expect(await fixture.write([many()], { out })).toMatchObject({ rows: 0 });
  });

  it('keeps no run from stopping while it stands still, whose files are removed', async () => {
    const controller = new AbortController();
    const out = new Writable({ write: () => void setTimeout(500).then(() => controller.abort(new Error('stopped'))) });
    await expect(fixture.write([many()], { out, signal: controller.signal })).rejects.toThrow('stopped');
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('dfinery-arrow'))).toEqual([]);
  });

  it('has taken all rows of the windows that count, also when a later one fails', async () => {
    async function* broken(): AsyncGenerator<Window> {
      yield fixture.window('2026-01-01', csvOf([{ id: 'a' }, { id: 'b' }]));
      yield fixture.window('2026-01-02', csvOf([]));
      throw new UserError('transient', 'the service is down.');
    }
    const pinned = new Map([['n', 'long' as const]]);
    const taken: Buffer[] = [];
    const sent: unknown[] = [];
    const out = new Writable({
      write(part, _encoding, done) {
        void setTimeout(50).then(() => {
          taken.push(part);
          done();
        });
      },
    });
    const onSent = (window: Window, rows: number) => {
      sent.push([window.receipt.from, rows, tableFromIPC(Buffer.concat(taken)).numRows]);
    };
    await expect(fixture.write(broken(), { pinned, out, onSent })).rejects.toThrow('the service is down.');
    expect(sent).toEqual([
      ['2026-01-01', 2, 2],
      ['2026-01-02', 0, 2],
    ]);
  });

  it('goes into a pipe or a device as it is, and through a link into its file', async () => {
    const windows = [fixture.window('2026-01-01', csvOf([{ id: 'a' }]))];
    const [pipe, link] = ['pipe', 'link'].map((name) => join(fixture.dir, name));
    expect(spawnSync('mkfifo', [pipe]).status).toBe(0);
    const read = readFile(pipe);
    await fixture.write(windows, { out: pipe });
    expect(tableFromIPC(await read).numRows).toBe(1);
    expect(statSync(pipe).isFIFO()).toBe(true);
    writeFileSync(fixture.out, 'older');
    symlinkSync(fixture.out, link);
    await fixture.write(windows, { out: link });
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(fixture.table().numRows).toBe(1);
  });

  it('never finds a partial file', async () => {
    async function* broken(): AsyncGenerator<Window> {
      yield fixture.window('2026-01-01', csvOf([{ id: 'a' }]));
      throw new UserError('transient', 'the service is down.');
    }
    const pinned = new Map([['n', 'long' as const]]);
    await expect(fixture.write(broken(), { pinned })).rejects.toThrow('the service is down.');
    expect(existsSync(fixture.out)).toBe(false);
    expect(
      readdirSync(fixture.dir).filter((name) => name.endsWith('.part') || name.startsWith('dfinery-arrow')),
    ).toEqual([]);
    await expect(fixture.write([], { out: `${fixture.dir}/none/x.arrows` })).rejects.toMatchObject({ kind: 'config' });
  });
});

describe('writing an Arrow stream', () => {
  it('removes the temporary file of a killed run after a day', async () => {
    const temporaries = ['0123456789ab', 'ba9876543210'].map((id) => join(fixture.dir, `.events.arrows.${id}.tmp`));
    for (const temporary of temporaries) writeFileSync(temporary, 'rows of somebody');
    const yesterday = Date.now() / 1_000 - 90_000;
    utimesSync(temporaries[0], yesterday, yesterday);
    await fixture.write([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    expect(temporaries.map((temporary) => existsSync(temporary))).toEqual([false, true]);
  });

  it('removes the folders of dead processes of this machine alone', async () => {
    const { pid } = spawnSync(process.execPath, ['-e', '0']);
    const ownedFolder = (folder: string, lease: string | undefined) => {
      mkdirSync(join(fixture.dir, folder), { mode: 0o700 });
      writeFileSync(join(fixture.dir, folder, '1.csv'), 'somebody');
      if (lease) writeFileSync(join(fixture.dir, folder, 'r0123456789abcdef.lease'), lease);
    };
    ownedFolder('dfinery-arrow-dead01', ownerText({ pid }));
    ownedFolder('dfinery-arrow-other1', ownerText({ pid, host: 'elsewhere' }));
    ownedFolder('dfinery-arrow-young1', undefined);
    ownedFolder('dfinery-arrow-notours', undefined);
    await fixture.write([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('dfinery-arrow'))).toEqual([
      'dfinery-arrow-notours',
      'dfinery-arrow-other1',
      'dfinery-arrow-young1',
    ]);
  });

  it('creates the spool folder, and names one that cannot be used', async () => {
    const windows = [fixture.window('2026-01-01', csvOf([{ id: 'a' }]))];
    expect(await fixture.write(windows, { spoolDir: join(fixture.dir, 'none', 'yet') })).toMatchObject({ rows: 1 });
    await expect(fixture.write(windows, { spoolDir: join(fixture.out, 'x') })).rejects.toMatchObject({
      kind: 'config',
      message: expect.stringContaining('set spool_dir'),
    });
  });

  it('leaves no unfinished file when the spool folder cannot be used', async () => {
    const blocked = join(fixture.dir, 'blocked');
    writeFileSync(blocked, '');
    for (let i = 0; i < 20; i++) {
      await expect(fixture.write([], { spoolDir: join(blocked, 'spool') })).rejects.toMatchObject({ kind: 'config' });
      await setTimeout(20);
      expect(readdirSync(fixture.dir)).toEqual(['blocked']);
    }
  });

  it('requests no window when the file cannot be written', async () => {
    let asked = 0;
    async function* windows(): AsyncGenerator<Window> {
      asked++;
      yield fixture.window('2026-01-01', csvOf([{ id: 'a' }]));
    }
    for (const out of [fixture.dir, `${fixture.dir}/none/x.arrows`]) {
      await expect(fixture.write(windows(), { out })).rejects.toMatchObject({ kind: 'config' });
    }
    expect(asked).toBe(0);
    expect(existsSync(`${fixture.dir}.part`)).toBe(false);
  });
});

describe('a record batch', () => {
  it('stays small when the schema has very many columns', async () => {
    const columns = 1_500;
    const pinned = new Map(Array.from({ length: columns }, (_, i) => [`n${i}`, 'long'] as [string, ColumnType]));
    const rows = 4_000;
    const csv = csvOf(Array.from({ length: rows }, (_, i) => ({ id: `r${i}`, [`n${i % 3}`]: `${i}` })));
    expect(await fixture.write([fixture.window('2026-01-01', csv)], { pinned })).toMatchObject({ rows });
    const sizes = [...RecordBatchReader.from(readFileSync(fixture.out))].map((batch) => batch.numRows);
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(rows);
    expect(Math.max(...sizes) * columns * 8).toBeLessThan(3 * 1024 * 1024);
  });
});

describe('a column that the pinned schema lacks', () => {
  it('is rescued, whatever its column_types', async () => {
    const pinned = new Map([['n', 'long' as const]]);
    const columnTypes = new Map([['x', 'boolean' as const]]);
    const csv = csvOf([
      { id: 'a', n: '1', x: 'TRUE' },
      { id: 'b', x: '' },
    ]);
    const result = await fixture.write([fixture.window('2026-01-01', csv)], { pinned, columnTypes });
    expect(Object.fromEntries(result.rescued)).toEqual({ x: 1 });
    const held = streamedColumns(fixture.out);
    expect(held.find(({ name }) => name === 'n')?.values).toEqual(['1', null]);
    expect(held.find(({ name }) => name === '_rescued')?.values).toEqual(['{"x":"TRUE"}', null]);
  });
});
