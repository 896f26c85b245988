import fs, {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import {
  acquireLease,
  HEARTBEAT_MS,
  isLeased,
  isLockTemporary,
  LockFile,
  type LockOptions,
  leaseOf,
  withLockFile,
} from '../../../src/fs/lock.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { ManualClock } from '../../support/service/service.ts';
import { openBelow, systemError, withCall } from '../../support/system-calls.ts';

const RUN = 'r0000000000000000';
const LONG_AGO = 1_000_000;
const DEAD = ownerText({ pid: DEAD_PID });
let dir = '';
let path = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-lock-'));
  path = join(dir, 'the.lock');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const options = { what: 'the ledger in /l', clock: systemClock, waitMs: 0 };
const IN_USE = 'The ledger in /l is in use: try again when that run has ended.';
const take = (more: Partial<LockOptions> = {}) => LockFile.acquire(path, { ...options, ...more });
const names = () => readdirSync(dir);
/** Sets the time of the last rewrite to so many seconds ago. */
const age = (seconds: number) => utimesSync(path, new Date(), new Date(Date.now() - seconds * 1_000));

type Real = (...all: unknown[]) => unknown;
const fails = (code: string) => () => {
  throw systemError(code);
};

describe('a lock', () => {
  it('admits one owner, names it to the next, and leaves no file behind', async () => {
    const lock = await take();
    expect(statSync(path).mode & 0o777).toBe(0o600);
    await expect(take()).rejects.toMatchObject({
      kind: 'transient',
      message: expect.stringMatching(new RegExp(`The ledger in /l is in use by process ${process.pid} on `)),
    });
    expect(lock.isHeld()).toBe(true);
    lock.release();
    (await take()).release();
    expect(names()).toEqual([]);
  });

  it('is waited for within a limit', async () => {
    const lock = await take();
    await expect(take({ waitMs: 50 })).rejects.toMatchObject({ kind: 'transient' });
    setTimeout(() => lock.release(), 30);
    (await take({ waitMs: 60_000 })).release();
  });

  it('is not waited for after an abort', async () => {
    const lock = await take();
    const reason = new Error('stopped');
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 20);
    await expect(take({ waitMs: 600_000, signal: controller.signal })).rejects.toBe(reason);
    lock.release();
  });

  it('is waited for exactly as long as allowed, with growing pauses', async () => {
    writeFileSync(path, ownerText());
    for (const [waitMs, pauses] of [
      [0, []],
      [50, [20, 30]],
      [500, [20, 40, 80, 160, 200]],
    ] as const) {
      const slept: number[] = [];
      const clock: Clock = { ...systemClock, sleep: async (ms) => void slept.push(ms) };
      await expect(take({ clock, waitMs })).rejects.toMatchObject({ kind: 'transient', where: { file: path } });
      expect(slept).toEqual(pauses);
    }
  });

  it('is held by one at a time among many', async () => {
    const state = { inside: 0, most: 0, done: 0 };
    const work = async () => {
      state.inside++;
      state.most = Math.max(state.most, state.inside);
      await new Promise((resolve) => setImmediate(resolve));
      state.inside--;
      state.done++;
    };
    writeFileSync(path, DEAD);
    await Promise.all(Array.from({ length: 20 }, () => withLockFile(path, { ...options, waitMs: 60_000 }, work)));
    expect(state).toMatchObject({ inside: 0, most: 1, done: 20 });
  });

  it('is released by synchronous work before any other turn', async () => {
    const order: number[] = [];
    const all = [1, 2, 3].map((n) => withLockFile(path, options, () => order.push(n)));
    expect(order).toEqual([1, 2, 3]);
    await Promise.all(all);
    const failing = withLockFile(path, options, () => {
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
    expect(names()).toEqual([]);
  });

  it.each([
    ['a link', () => symlinkSync('nowhere', path), 'ELOOP'],
    ['a folder', () => mkdirSync(path), 'EISDIR'],
  ])('that is %s is refused with its path and advice', async (_name, make, code) => {
    make();
    await expect(take()).rejects.toMatchObject({
      kind: 'config',
      message: `${path}, the lock of the ledger in /l, is no lock of this user (${code}): remove it.`,
      where: { file: path },
    });
    expect(names()).toEqual(['the.lock']);
  });

  it('is in use, without a process, if its owner is unknown', async () => {
    writeFileSync(path, 'held');
    await expect(take()).rejects.toMatchObject({ message: IN_USE, where: { file: path } });
  });

  it('is taken if it is released between two attempts', async () => {
    writeFileSync(path, ownerText());
    const look = (real: Real, of: unknown, ...rest: unknown[]) => {
      const found = real(of, ...rest);
      if (of === path && existsSync(path)) unlinkSync(path);
      return found;
    };
    const lock = await withCall(fs, 'lstatSync', look, () => take());
    expect(lock.isHeld()).toBe(true);
    lock.release();
  });
});

describe('the file of a lock', () => {
  it('is complete when it is renamed, so that a killed process leaves no lock', async () => {
    const seen: unknown[] = [];
    const link = (real: Real, ...all: unknown[]) => {
      seen.push(existsSync(path), JSON.parse(readFileSync(String(all[0]), 'utf8')));
      return real(...all);
    };
    await withCall(fs, 'linkSync', link, () => take());
    expect(seen).toEqual([false, { ...JSON.parse(ownerText()), token: expect.stringMatching(/^[0-9a-f]{16}$/) }]);
    expect([names(), statSync(path).nlink]).toEqual([['the.lock'], 1]);
  });

  it('is created on a file system without hard links as well', async () => {
    await withCall(fs, 'linkSync', fails('ENOTSUP'), async () => {
      const lock = await take();
      expect(lock.isHeld()).toBe(true);
      await expect(take()).rejects.toMatchObject({ kind: 'transient' });
      lock.release();
    });
    expect(names()).toEqual([]);
  });

  it.each([
    ['writeSync', 'ENOSPC'],
    ['linkSync', 'EIO'],
  ])('that %s refuses is the error of the system, and leaves no file', async (call, code) => {
    await expect(withCall(fs, call, fails(code), () => take())).rejects.toThrow(code);
    expect(names()).toEqual([]);
  });

  it.each([
    ['another process creates it at this moment', () => writeFileSync(path, ownerText()), ['the.lock']],
    ['its temporary file is swept', (temporary: string) => rmSync(temporary), []],
  ])('is not created if %s', async (_how, meanwhile, left) => {
    const link = (real: Real, ...all: unknown[]) => {
      meanwhile(String(all[0]));
      return real(...all);
    };
    await expect(withCall(fs, 'linkSync', link, () => take())).rejects.toMatchObject({ kind: 'transient' });
    expect(names()).toEqual(left);
  });

  it('removes the temporary files of processes that were killed while they took it, and no live one', async () => {
    const live = '.owner-000000000003.tmp';
    writeFileSync(join(dir, '.owner-000000000001.tmp'), DEAD);
    writeFileSync(join(dir, '.owner-000000000002.tmp'), '');
    writeFileSync(join(dir, live), ownerText());
    writeFileSync(join(dir, 'owner-000000000001.tmp'), DEAD);
    const lock = await take();
    expect(names().sort()).toEqual([live, 'owner-000000000001.tmp', 'the.lock']);
    lock.release();
  });

  it('removes the files of processes that were killed once they had stolen it', async () => {
    writeFileSync(`${path}.steal-0123456789abcdef`, DEAD);
    writeFileSync(`${path}2.steal-0123456789abcdef`, DEAD);
    const lock = await take();
    expect(names().sort()).toEqual(['the.lock', 'the.lock2.steal-0123456789abcdef']);
    lock.release();
  });

  it('has temporary files with recognisable names', () => {
    for (const name of ['.time-0123456789ab.tmp', '.owner-0123456789ab.tmp']) expect(isLockTemporary(name)).toBe(true);
    for (const name of ['x.time-0123456789ab.tmp', '.time-0123456789ab.tmp2', '.time-01.tmp', 'lock'])
      expect(isLockTemporary(name)).toBe(false);
  });
});

describe('a lock, while it is held,', () => {
  it('is renewed until it is released', async () => {
    const clock = new ManualClock();
    const lock = await take({ clock });
    for (let i = 0; i < 2; i++) {
      age(50);
      clock.pass(HEARTBEAT_MS);
      expect(Date.now() - statSync(path).mtimeMs).toBeLessThan(30_000);
      expect(lock.isHeld()).toBe(true);
    }
    lock.release();
    expect([clock.pending, names()]).toEqual([0, []]);
  });

  it.each([
    ['another owner’s', () => writeFileSync(path, ownerText())],
    ['empty', () => writeFileSync(path, '')],
    ['gone', () => rmSync(path)],
  ])('notices that its file is %s, and leaves it unchanged', async (_how, change) => {
    const clock = new ManualClock();
    const lock = await take({ clock });
    change();
    const left = existsSync(path) && readFileSync(path, 'utf8');
    expect(lock.isHeld()).toBe(false);
    clock.pass(HEARTBEAT_MS);
    expect(clock.pending).toBe(0);
    lock.release();
    expect(existsSync(path) && readFileSync(path, 'utf8')).toBe(left);
  });

  it('is renewed again after errors of the disk', async () => {
    const clock = new ManualClock();
    await take({ clock });
    rmSync(path);
    symlinkSync('nowhere', path);
    clock.pass(HEARTBEAT_MS);
    expect(clock.pending).toBe(1);
  });

  it.runIf(process.platform === 'linux')('keeps no file descriptor open', async () => {
    const clock = new ManualClock();
    const lock = await take({ clock });
    clock.pass(HEARTBEAT_MS);
    expect(lock.isHeld()).toBe(true);
    writeFileSync(path, ownerText({ host: 'elsewhere' }));
    await expect(take()).rejects.toMatchObject({ kind: 'transient' });
    expect(openBelow(dir)).toEqual([]);
  });
});

describe('the lock of a dead process', () => {
  it.each([
    ['another machine', ownerText({ host: 'elsewhere', pid: DEAD_PID })],
    ['another container under the same host name', ownerText({ space: 'boot pid:[1]', pid: DEAD_PID })],
    ['an earlier version', '{"pid":4194999,"host":"h","began":"","token":"t"}'],
    ['a token that is too short', DEAD.replace('0123456789abcdef', 'abc')],
    ['nobody knows whom', 'nonsense'],
    ['a process that is writing it at this moment', ''],
  ])(
    'of %s is stolen after a minute of silence, in either direction of the clock, and not before',
    async (_name, text) => {
      for (const silence of [70, -70]) {
        writeFileSync(path, text);
        age(50);
        await expect(take()).rejects.toMatchObject({ kind: 'transient' });
        age(silence);
        (await take()).release();
        expect(names()).toEqual([]);
      }
    },
  );

  it('is not stolen while its process is alive, however long it is silent', async () => {
    writeFileSync(path, ownerText());
    age(3_600);
    await expect(take()).rejects.toMatchObject({ kind: 'transient' });
  });
});

describe.runIf(process.platform === 'linux')('the lock of a process that died here', () => {
  const steal = () => `${path}.steal-0123456789abcdef`;

  it.each([
    ['is no more', DEAD],
    ['has its id from one that is no more', ownerText({ started: '1' })],
  ])('and %s is stolen at once', async (_name, text) => {
    writeFileSync(path, text);
    (await take()).release();
    expect(names()).toEqual([]);
  });

  it('is left to whoever stole it first', async () => {
    writeFileSync(path, DEAD);
    const quicker = ownerText().replace(/"token":"[0-9a-f]*"/, '"token":"fedcba9876543210"');
    const link = (real: Real, ...all: unknown[]) => {
      // Between the look at the dead owner and the right to remove its file.
      if (String(all[1]).includes('.steal-')) writeFileSync(path, quicker);
      return real(...all);
    };
    await expect(withCall(fs, 'linkSync', link, () => take())).rejects.toMatchObject({ kind: 'transient' });
    expect([names(), readFileSync(path, 'utf8')]).toEqual([['the.lock'], quicker]);
  });

  it('is left to the process that steals it while that is alive', async () => {
    writeFileSync(path, DEAD);
    writeFileSync(steal(), ownerText());
    await expect(take({ waitMs: 20 })).rejects.toMatchObject({ kind: 'transient' });
    expect([readFileSync(path, 'utf8'), readFileSync(steal(), 'utf8')]).toEqual([DEAD, ownerText()]);
  });

  it('is stolen by the next attempt if the process that stole it died, and leaves no file', async () => {
    writeFileSync(path, DEAD);
    writeFileSync(steal(), DEAD);
    await expect(take()).rejects.toMatchObject({ kind: 'transient' });
    expect(names()).toEqual(['the.lock']);
    (await take()).release();
    expect(names()).toEqual([]);
  });

  it.each([
    ['its lock is removed meanwhile', () => existsSync(path) && unlinkSync(path)],
    ['the process that steals it ends meanwhile', () => existsSync(steal()) && unlinkSync(steal())],
  ])('is left alone if %s', async (_how, meanwhile) => {
    writeFileSync(path, DEAD);
    if (_how.startsWith('the process')) writeFileSync(steal(), ownerText());
    const look = (real: Real, of: unknown, ...rest: unknown[]) => {
      const found = real(of, ...rest);
      if (of === steal()) meanwhile();
      return found;
    };
    await expect(withCall(fs, 'lstatSync', look, () => take())).rejects.toMatchObject({ kind: 'transient' });
    expect(existsSync(steal())).toBe(false);
  });
});

describe('a lease', () => {
  const leave = (text: string): string => {
    const lease = join(dir, `${RUN}.lease`);
    writeFileSync(lease, text);
    return lease;
  };

  it('is held by a live process until it is released, however long it is silent', () => {
    const clock = new ManualClock();
    const lease = acquireLease(dir, clock);
    const file = join(dir, `${lease.run}.lease`);
    utimesSync(file, LONG_AGO, LONG_AGO);
    expect(isLeased(dir, lease.run)).toBe(true);
    clock.pass(HEARTBEAT_MS);
    expect(statSync(file).mtimeMs).toBeGreaterThan(LONG_AGO * 1_000);
    lease.release();
    expect([isLeased(dir, lease.run), clock.pending]).toEqual([false, 0]);
  });

  it.runIf(process.platform === 'linux')('ends with its process, and is not that of another under the same id', () => {
    for (const dead of [{ pid: DEAD_PID }, { started: '1' }]) {
      leave(ownerText(dead));
      expect(isLeased(dir, RUN)).toBe(false);
    }
  });

  it('of another machine ends once it is no longer renewed', () => {
    const lease = leave(ownerText({ host: 'elsewhere', pid: DEAD_PID }));
    expect(isLeased(dir, RUN)).toBe(true);
    utimesSync(lease, LONG_AGO, LONG_AGO);
    expect(isLeased(dir, RUN)).toBe(false);
  });

  it('is recognised by the name of its file alone', () => {
    expect(leaseOf(`${RUN}.lease`)).toBe(RUN);
    for (const name of [`${RUN}.part`, `x${RUN}.lease`, `${RUN}.lease2`, 'r00.lease', 'lease'])
      expect(leaseOf(name)).toBeUndefined();
  });

  it('whose file was removed while it was created is not taken', async () => {
    const clock = new ManualClock();
    const write = (real: Real, ...all: unknown[]) => {
      for (const name of names()) rmSync(join(dir, name));
      return real(...all);
    };
    const taking = withCall(fs, 'writeSync', write, () => acquireLease(dir, clock));
    await expect(taking).rejects.toMatchObject({ code: 'EEXIST' });
    expect(clock.pending).toBe(0);
  });

  it('in a folder that is removed meanwhile belongs to no run', async () => {
    leave(ownerText({ host: 'elsewhere' }));
    const removed = (real: Real, of: unknown, ...rest: unknown[]) => {
      if (String(of).includes('.time-')) rmSync(dir, { recursive: true });
      return real(of, ...rest);
    };
    expect(await withCall(fs, 'openSync', removed, () => isLeased(dir, RUN))).toBe(false);
  });

  it('that cannot be read is the error of the system, and the files of its run stay', () => {
    symlinkSync('nowhere', join(dir, `${RUN}.lease`));
    expect(() => isLeased(dir, RUN)).toThrow('ELOOP');
  });
});
