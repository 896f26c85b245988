import fs, { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Secret } from '../../../src/base/secrets.ts';
import { createLedgerFile } from '../../../src/erasure/ledger/file.ts';
import { LedgerKey, makeKey, storedKey } from '../../../src/erasure/ledger/key.ts';
import { Ledger } from '../../../src/erasure/ledger/ledger.ts';
import { GENESIS, type LedgerOutput, verifyLine } from '../../../src/erasure/ledger/line.ts';
import { Folders, quickClock } from '../../support/deletion/deletions.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

const KEY = new LedgerKey(new Secret('k'.repeat(32)));
const ID = 'a'.repeat(64);
const request = (attempt: number) => ({ kind: 'before', id: ID, attempt }) as const;
const answered = (outcome: 'done' | 'retry', code: string, status: number | null) =>
  ({ kind: 'after', id: ID, attempt: 1, outcome, code, status }) as const;

/** An output whose writes end when the test says so. */
class SlowOutput implements LedgerOutput {
  readonly writes: string[][] = [];
  readonly #waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];
  closed = 0;

  write(lines: readonly string[]): Promise<void> {
    this.writes.push([...lines]);
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject }));
  }
  async close(): Promise<void> {
    this.closed++;
  }
  async end(error?: Error): Promise<void> {
    const { resolve, reject } = this.#waiting.shift() ?? { resolve() {}, reject() {} };
    if (error) reject(error);
    else resolve();
    await setImmediate();
  }
  kinds(): unknown[][] {
    return this.writes.map((lines) => lines.map((line) => JSON.parse(line).kind));
  }
}

let output: SlowOutput;
let ledger: Ledger;
beforeEach(() => {
  output = new SlowOutput();
  ledger = new Ledger({ run: 'r1', prev: GENESIS, key: KEY, output, clock: quickClock() });
});

/** Whether a promise has ended by now. */
async function hasEnded(promise: Promise<unknown>): Promise<boolean> {
  let ended = false;
  const end = () => {
    ended = true;
  };
  promise.then(end, end);
  await setImmediate();
  return ended;
}

describe('the ledger of a run', () => {
  it.each<[string, () => Promise<void>]>([
    ['before', () => ledger.write(request(1))],
    ['purge', () => ledger.write({ kind: 'purge', target: 'duckdb x', outcome: 'done', counts: { rows: 1 } })],
    ['close', () => ledger.write({ kind: 'close', counts: { done: 1 } })],
  ])('lets nobody go on before the line is on disk: %s', async (kind, add) => {
    const added = add();
    expect(await hasEnded(added)).toBe(false);
    expect(output.kinds()).toEqual([[kind]]);
    await output.end();
    expect(await hasEnded(added)).toBe(true);
    await added;
  });

  it('writes waiting lines together, in the order of the calls, each chained to the one before', async () => {
    const first = ledger.write(request(1));
    const second = ledger.write(request(2));
    ledger.add(answered('retry', '50000', null));
    const third = ledger.write(request(3));
    expect(output.kinds()).toEqual([['before']]);
    await output.end();
    expect([await hasEnded(first), await hasEnded(second)]).toEqual([true, false]);
    expect(output.kinds()).toEqual([['before'], ['before', 'after', 'before']]);
    await output.end();
    await Promise.all([second, third]);
    const lines = output.writes.flat().map((text) => verifyLine(text, KEY));
    const signed = lines.map((line) => ('line' in line ? line.line : undefined));
    expect(signed.map((line) => line?.prev)).toEqual([GENESIS, ...signed.slice(0, -1).map((line) => line?.mac)]);
    expect(signed[2]).toMatchObject({ v: 1, run: 'r1', status: null, at: new Date(quickClock().now()).toISOString() });
  });

  it('waits for an answer that is not on disk yet, and for nothing when all are', async () => {
    await ledger.sync();
    ledger.add(answered('done', '20000', 200));
    expect(output.writes).toEqual([]);
    const synced = ledger.sync();
    expect(await hasEnded(synced)).toBe(false);
    await output.end();
    await synced;
    await ledger.sync();
    expect(output.kinds()).toEqual([['after']]);
  });

  it('has the last line on disk as its head', async () => {
    expect(ledger.head).toBe(GENESIS);
    const first = ledger.write(request(1));
    ledger.add(answered('done', '20000', 200));
    expect(ledger.head).toBe(GENESIS);
    await output.end();
    await first;
    expect(ledger.head).toBe(JSON.parse(output.writes[0][0]).mac);
  });

  it('accepts no line after a failed write, and can still be closed', async () => {
    const first = ledger.write(request(1));
    const second = ledger.write(request(2));
    first.catch(() => {});
    second.catch(() => {});
    await output.end(new Error('no space'));
    const failure = { kind: 'transient', message: expect.stringContaining('could not be written') };
    await expect(first).rejects.toMatchObject(failure);
    await expect(second).rejects.toMatchObject(failure);
    await expect(ledger.sync()).rejects.toMatchObject(failure);
    expect(() => ledger.add(answered('done', '20000', 200))).toThrow('could not be written');
    await expect(ledger.close()).rejects.toMatchObject(failure);
    expect(output.closed).toBe(1);
    expect(output.writes).toHaveLength(1);
    expect(ledger.head).toBe(GENESIS);
  });

  it('is closed when its last line is on disk', async () => {
    ledger.add(answered('done', '20000', 200));
    const closed = ledger.close();
    expect([await hasEnded(closed), output.closed]).toEqual([false, 0]);
    await output.end();
    await closed;
    expect(output.closed).toBe(1);
  });
});

describe('the files of a ledger', () => {
  let folders: Folders;
  beforeEach(() => {
    folders = new Folders();
    mkdirSync(folders.ledger);
  });
  afterEach(() => folders.close());

  const held = { checkHeld: () => {} };
  const path = () => join(folders.ledger, 'ledger-000001-x.jsonl');

  it('are new, have mode 0600, and hold complete lines', async () => {
    const file = await createLedgerFile(folders.ledger, 'x', held);
    await file.write(['{"a":1}', '{"b":2}']);
    await file.write(['{"c":3}']);
    await file.close();
    expect(readFileSync(path(), 'utf8')).toBe('{"a":1}\n{"b":2}\n{"c":3}\n');
    expect(statSync(path()).mode & 0o777).toBe(0o600);
    await expect(file.write(['{}'])).rejects.toThrow();
    await (await createLedgerFile(folders.ledger, 'x', held)).close();
    expect(folders.ledgerFiles()).toEqual(['ledger-000001-x.jsonl', 'ledger-000002-x.jsonl']);
  });

  it.runIf(process.platform === 'linux')(
    'are synced to disk with their name, and each line before it is relied on',
    async () => {
      const synced: string[] = [];
      const probe = await open(folders.ledger);
      const handle = Object.getPrototypeOf(probe) as object;
      await probe.close();
      function sync(this: FileHandle, real: () => unknown) {
        const name = fs.readlinkSync(`/proc/self/fd/${this.fd}`);
        synced.push(name === path() ? readFileSync(path(), 'utf8') : name);
        return real();
      }
      const both = (work: () => Promise<void>) =>
        withCall(handle, 'sync', sync, () => withCall(handle, 'datasync', sync, work));
      await both(async () => {
        const file = await createLedgerFile(folders.ledger, 'x', held);
        await file.write(['{"a":1}', '{"b":2}']);
        await file.write(['{"c":3}']);
        await file.close();
      });
      expect(synced).toEqual([folders.ledger, '{"a":1}\n{"b":2}\n', '{"a":1}\n{"b":2}\n{"c":3}\n']);
    },
  );

  it('have a key of 64 random hex digits, created once with mode 0600', async () => {
    expect(storedKey(folders.ledger)).toBeUndefined();
    const made = (await makeKey(folders.ledger)).reveal();
    expect(made).toMatch(/^[0-9a-f]{64}$/);
    expect((await makeKey(folders.ledger)).reveal()).toBe(made);
    expect(storedKey(folders.ledger)?.reveal()).toBe(made);
    expect(readdirSync(folders.ledger)).toEqual(['ledger.key']);
    expect(statSync(join(folders.ledger, 'ledger.key')).mode & 0o777).toBe(0o600);
  });

  it('have a key also on a file system without hard links', async () => {
    const noLinks = () => Promise.reject(systemError('EPERM'));
    const made = await withCall(fs.promises, 'link', noLinks, () => makeKey(folders.ledger));
    expect(storedKey(folders.ledger)?.reveal()).toBe(made.reveal());
    expect(readdirSync(folders.ledger)).toEqual(['ledger.key']);
  });

  it('must have a key that only their owner can read', () => {
    const path = join(folders.ledger, 'ledger.key');
    writeFileSync(path, 'k'.repeat(64));
    // Not left to the umask.
    chmodSync(path, 0o640);
    expect(() => storedKey(folders.ledger)).toThrow(expect.objectContaining({ kind: 'config', where: { file: path } }));
  });

  it.each([
    ['empty', '', 'is empty'],
    ['blank', ' \n', 'is empty'],
    ['a folder', undefined, 'is a link, belongs to another user'],
  ])('are refused with a key that is %s', (_name, text, why) => {
    const path = join(folders.ledger, 'ledger.key');
    if (text === undefined) mkdirSync(path, { mode: 0o700 });
    else writeFileSync(path, text, { mode: 0o600 });
    expect(() => storedKey(folders.ledger)).toThrow(
      expect.objectContaining({ kind: 'config', message: expect.stringContaining(why) }),
    );
    expect(() => storedKey(folders.ledger)).not.toThrow('cannot be read');
    expect(existsSync(path)).toBe(true);
  });

  it('fail with a message if their key cannot be read', () => {
    writeFileSync(join(folders.root, 'file'), '');
    expect(() => storedKey(join(folders.root, 'file'))).toThrow(/cannot be read: .*ENOTDIR/);
  });

  it('have different hashes of ids, lists and lines of the same text', () => {
    const text = 'x'.repeat(64);
    const all = [KEY.idHash(text), KEY.listHash(text), KEY.mac(text)];
    expect(new Set(all).size).toBe(3);
    for (const one of all) expect(one).toMatch(/^[0-9a-f]{64}$/);
    expect(KEY.check).toMatch(/^[0-9a-f]{16}$/);
  });
});
