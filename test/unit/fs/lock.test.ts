import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs, { chownSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { acquireLock, type LockOptions, readOwner } from '../../../src/fs/lock.ts';
import { THIS_PROCESS } from '../../../src/fs/process-identity.ts';
import { ManualClock } from '../../support/clock.ts';
import { expectMode } from '../../support/modes.ts';
import { newFolder } from '../../support/new-folder.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { systemError, withCall } from '../../support/system-calls.ts';
import { until } from '../../support/wait.ts';

const DEAD = ownerText({ pid: DEAD_PID });
/** An owner on another machine, which cannot be seen from here. */
const FAR = ownerText({ host: 'elsewhere', pidSpace: 'other' });
let dir = '';
let path = '';
beforeEach(() => {
  dir = newFolder();
  path = join(dir, 'the.lock');
});

const options = { subject: 'the ledger in /l', clock: systemClock, waitMs: 0 };
const take = (more: Partial<LockOptions> = {}) => acquireLock(path, { ...options, ...more });
const names = () => readdirSync(dir);
/** Sets the time of the last heartbeat to so many seconds ago. */
const age = (seconds: number) => utimesSync(path, new Date(), new Date(Date.now() - seconds * 1_000));

describe('a lock', () => {
  it('admits one owner, names it to the next, and leaves no file behind', async () => {
    const lock = await take();
    expectMode(path, 0o600);
    await expect(take()).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringMatching(new RegExp(`^The ledger in /l is in use by process ${process.pid} on `)),
    });
    lock.checkHeld();
    expect(readOwner(path)).toMatchObject({ isDead: false });
    lock.release();
    expect(readOwner(path)).toBeUndefined();
    (await take()).release();
    expect(names()).toEqual([]);
  });

  it.runIf(process.getuid?.() === 0)(
    'of root belongs to the owner of its folder, who can then wait for it',
    async () => {
      chownSync(dir, 1234, 1235);
      const lock = await take();
      expect(statSync(path)).toMatchObject({ uid: 1234, gid: 1235 });
      lock.release();
    },
  );

  it('is waited for within a limit, and not after an abort', async () => {
    const lock = await take();
    await expect(take({ waitMs: 50 })).rejects.toMatchObject({ exitCode: 3 });
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error('stopped')), 20);
    await expect(take({ waitMs: 600_000, signal: controller.signal })).rejects.toThrow('stopped');
    setTimeout(() => lock.release(), 30);
    (await take({ waitMs: 60_000 })).release();
  });

  it('stays alive by a heartbeat until it is released', async () => {
    const clock = new ManualClock();
    const lock = await take({ clock });
    age(50);
    clock.pass(10_000);
    expect(Date.now() - statSync(path).mtimeMs).toBeLessThan(30_000);
    lock.release();
    expect([clock.pending, names()]).toEqual([0, []]);
  });

  it.each([
    ['is another owner’s', () => writeFileSync(path, ownerText())],
    ['is gone', () => rmSync(path)],
  ])('is lost if its file %s', async (_how, change) => {
    const lock = await take();
    change();
    const left = names();
    expect(() => lock.checkHeld()).toThrow(/^Another run has taken over the ledger in \/l/);
    lock.release();
    expect(names()).toEqual(left);
  });

  it('names a file that cannot be a lock', async () => {
    path = dir;
    await expect(take()).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining(`${dir} is in the way`),
    });
  });
});

it.each([
  ['of another machine', FAR],
  ['of another version', '{}'],
  ['that is being written', ''],
])('the lock of an owner elsewhere is taken over after a minute of silence: %s', async (_whose, text) => {
  writeFileSync(path, text);
  age(50);
  await expect(take()).rejects.toMatchObject({ exitCode: 3 });
  age(70);
  (await take()).release();
  expect(names()).toEqual([]);
});

it('stays that of a silent owner who touches it while another takes it for dead', async () => {
  writeFileSync(path, FAR);
  age(70);
  const touchFirst = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
    if (all[0] === `${path}.steal`) age(0);
    return real(...all);
  };
  await expect(withCall(fs, 'openSync', touchFirst, () => take())).rejects.toMatchObject({ exitCode: 3 });
  expect([readFileSync(path, 'utf8'), names()]).toEqual([FAR, ['the.lock']]);
});

/** Without /proc nothing tells whether a process is alive. */
describe.runIf(THIS_PROCESS.pidSpace !== '')('the lock of a process of this machine', () => {
  it('is taken over at once if that is dead, or if its number belongs to another one now', async () => {
    for (const dead of [DEAD, ownerText({ started: '1' })]) {
      writeFileSync(path, dead);
      (await take()).release();
    }
  });

  it('is taken over at once if that has ended and nobody has collected it, as in a container without init', async () => {
    // A shell leaves a child to a program that never waits for it.
    const parent = spawn('sh', ['-c', 'sleep 0.2 & echo $!; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'] });
    try {
      const [line] = await once(parent.stdout, 'data');
      const pid = Number(String(line));
      const stat = () => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? [];
      await until(() => stat()[0] === 'Z');
      writeFileSync(path, ownerText({ pid, started: stat()[19] ?? '' }));
      (await take()).release();
    } finally {
      parent.kill('SIGKILL');
    }
  });

  it('has one new owner if two find the former one dead at the same moment', async () => {
    writeFileSync(path, DEAD);
    let other: Promise<unknown> | undefined;
    // Another process tries to take the lock between the last look at its file and the removal.
    const takeFirst = (real: (...all: unknown[]) => unknown, ...all: unknown[]) => {
      if (other === undefined) {
        other = Promise.resolve();
        other = take().catch(({ exitCode }) => exitCode);
      }
      return real(...all);
    };
    const lock = await withCall(fs, 'rmSync', takeFirst, () => take());
    expect(await other).toBe(3);
    lock.checkHeld();
    lock.release();
  });

  it('is not taken over at once if its file does not say when that began', async () => {
    const { started: _started, ...owner } = JSON.parse(ownerText());
    writeFileSync(path, JSON.stringify(owner));
    await expect(take()).rejects.toMatchObject({ exitCode: 3 });
  });

  it('is never taken over while that is alive, however long it is silent', async () => {
    writeFileSync(path, ownerText());
    age(1_000_000);
    await expect(take()).rejects.toMatchObject({ exitCode: 3 });
  });

  it('is not called in the way where the disk has no room for a new one', async () => {
    writeFileSync(path, DEAD);
    const full = () => {
      throw systemError('ENOSPC');
    };
    await expect(withCall(fs, 'writeFileSync', full, () => take())).rejects.toThrow(/^ENOSPC/);
    expect(names()).toEqual(['the.lock']);
  });

  it('is taken over although the process that did so before was killed', async () => {
    writeFileSync(path, DEAD);
    writeFileSync(`${path}.steal`, DEAD);
    (await take({ waitMs: 1_000 })).release();
    expect(names()).toEqual([]);
  });
});
