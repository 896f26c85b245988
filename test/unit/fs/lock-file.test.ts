import fs, {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { HEARTBEAT_MS } from '../../../src/fs/holder-file.ts';
import { LockFile, withBriefLock, withLockFile } from '../../../src/fs/lock-file.ts';
import { DEAD_PID, holderText } from '../../support/processes/holder.ts';
import { ManualClock } from '../../support/service/service.ts';
import { withCall } from '../../support/system-calls.ts';

const LONG_AGO = 1_000_000;
let dir = '';
let path = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-lock-'));
  path = join(dir, 'the.lock');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const options = { what: 'the ledger in /l', clock: systemClock, waitMs: 0 };
const take = (more: Partial<typeof options> & { signal?: AbortSignal } = {}) =>
  LockFile.take(path, { ...options, ...more });

describe('a lock', () => {
  it('lets one holder in, names it to the next, and leaves nothing behind', async () => {
    const lock = await take();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await expect(take()).rejects.toMatchObject({
      kind: 'transient',
      message: expect.stringMatching(new RegExp(`The ledger in /l is in use by process ${process.pid} on `)),
    });
    expect(lock.isHeld()).toBe(true);
    lock.release();
    (await take()).release();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('is waited for within a bound [R182]', async () => {
    const lock = await take();
    await expect(take({ waitMs: 50 })).rejects.toMatchObject({ kind: 'transient' });
    setTimeout(() => lock.release(), 30);
    (await take({ waitMs: 60_000 })).release();
  });

  it('is waited for no longer than until an abort [R182]', async () => {
    const lock = await take();
    const reason = new Error('stopped');
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 20);
    await expect(take({ waitMs: 600_000, signal: controller.signal })).rejects.toBe(reason);
    lock.release();
  });

  it.runIf(process.platform === 'linux')(
    'of a dead process is left to whoever was quicker to take it over [R180]',
    async () => {
      writeFileSync(path, holderText({ pid: DEAD_PID }));
      const quicker = holderText().replace(/"token":"[0-9a-f]*"/, '"token":"fedcba9876543210"');
      let isTaken = false;
      // Between the look at the dead holder and the right to remove its file.
      const link = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
        if (!isTaken && String(all[1]).includes('.takeover-')) {
          isTaken = true;
          rmSync(path);
          writeFileSync(path, quicker);
        }
        return real(...all);
      };
      await expect(withCall(fs, 'linkSync', link, () => take())).rejects.toMatchObject({ kind: 'transient' });
      expect(isTaken).toBe(true);
      expect(readFileSync(path, 'utf8')).toBe(quicker);
    },
  );

  it.runIf(process.platform === 'linux').each([
    ['a dead process', holderText({ pid: DEAD_PID })],
    ['another process under the same id', holderText({ started: '1' })],
  ])('of %s is taken over at once', async (_name, text) => {
    writeFileSync(path, text);
    (await take()).release();
    expect(readdirSync(dir)).toEqual([]);
  });

  it.each([
    ['another machine', holderText({ host: 'elsewhere', pid: DEAD_PID })],
    ['another container under the same host name', holderText({ space: 'boot pid:[1]', pid: DEAD_PID })],
    ['an earlier version', '{"pid":4194999,"host":"h","began":"","token":"t"}'],
    ['nobody knows whom', 'nonsense'],
    ['a process that is writing it at this moment', ''],
  ])('of %s is taken over after its silence, and not before [R180]', async (_name, text) => {
    writeFileSync(path, text);
    await expect(take()).rejects.toMatchObject({ kind: 'transient' });
    utimesSync(path, LONG_AGO, LONG_AGO);
    (await take()).release();
    utimesSync(dir, LONG_AGO, LONG_AGO);
    expect(readdirSync(dir)).toEqual([]);
  });

  it.runIf(process.platform === 'linux')(
    'is taken over though the one who took it over before died over it',
    async () => {
      writeFileSync(path, holderText({ pid: DEAD_PID }));
      const claim = `${path}.takeover-0123456789abcdef`;
      writeFileSync(claim, holderText({ pid: DEAD_PID + 1 }));
      (await take({ waitMs: 60_000 })).release();
      expect(readdirSync(dir)).toEqual([]);
    },
  );

  it('knows when it was taken away, and leaves the next holder its own', async () => {
    const clock = new ManualClock();
    const lock = await LockFile.take(path, { ...options, clock });
    writeFileSync(path, holderText());
    expect(lock.isHeld()).toBe(false);
    clock.pass(HEARTBEAT_MS);
    expect(clock.pending).toBe(0);
    lock.release();
    expect(readdirSync(dir)).toEqual(['the.lock']);
  });

  it.each([
    ['a link', () => symlinkSync(join(dir, 'victim'), path)],
    ['a folder', () => mkdirSync(path)],
  ])('that is %s is refused and named', async (_name, make) => {
    make();
    await expect(take()).rejects.toMatchObject({ kind: 'config', message: expect.stringContaining(path) });
  });

  it('is held by one at a time among many who want it [R180]', async () => {
    const state = { inside: 0, most: 0, done: 0 };
    const work = async () => {
      state.inside++;
      state.most = Math.max(state.most, state.inside);
      await new Promise((resolve) => setImmediate(resolve));
      state.inside--;
      state.done++;
    };
    writeFileSync(path, holderText({ pid: DEAD_PID }));
    await Promise.all(Array.from({ length: 20 }, () => withLockFile(path, { ...options, waitMs: 60_000 }, work)));
    expect(state).toMatchObject({ inside: 0, most: 1, done: 20 });
  });

  it('for work that waits for nothing is over before anybody else has a turn', async () => {
    const order: number[] = [];
    const all = [1, 2, 3].map((n) => withBriefLock(path, options, () => order.push(n)));
    expect(order).toEqual([1, 2, 3]);
    await Promise.all(all);
    await expect(
      withBriefLock(path, options, () => {
        throw new Error('no');
      }),
    ).rejects.toThrow('no');
    expect(readdirSync(dir)).toEqual([]);
  });
});

describe.runIf(process.platform === 'linux')('a lock of a dead holder, which another process is taking over', () => {
  const dead = holderText({ pid: DEAD_PID });
  const claimOf = (claimed: string) => `${claimed}.takeover-0123456789abcdef`;

  it('is left to it while it lives, and nothing is changed', async () => {
    writeFileSync(path, dead);
    writeFileSync(claimOf(path), holderText());
    await expect(take({ waitMs: 20 })).rejects.toMatchObject({ kind: 'transient' });
    expect([readFileSync(path, 'utf8'), readFileSync(claimOf(path), 'utf8')]).toEqual([dead, holderText()]);
  });

  it('is taken over when that one is dead too, and nothing of it is left', async () => {
    writeFileSync(path, dead);
    writeFileSync(claimOf(path), dead);
    // The one that finds a dead taker removes its claim, and has the lock at its next turn.
    (await take({ waitMs: 60_000 })).release();
    expect(readdirSync(dir)).toEqual([]);
  });

  it('is not followed through claims upon claims without end', async () => {
    let last = path;
    writeFileSync(last, dead);
    for (let depth = 0; depth < 6; depth++) {
      last = claimOf(last);
      writeFileSync(last, dead);
    }
    await expect(take()).rejects.toMatchObject({ kind: 'transient' });
    expect(readFileSync(path, 'utf8')).toBe(dead);
    expect(readdirSync(dir)).toHaveLength(7);
  });
});

it('a lock that cannot be read is none of this user: which, and what to do', async () => {
  symlinkSync('nowhere', path);
  await expect(take()).rejects.toMatchObject({
    kind: 'config',
    message: `${path}, the lock of the ledger in /l, is no lock of this user (ELOOP): remove it.`,
    where: { file: path },
  });
});
