import fs, { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Clock, systemClock } from '../../../src/base/clock.ts';
import { removeIfThere } from '../../../src/fs/holder-file.ts';
import { LockFile, type LockOptions, withLockFile } from '../../../src/fs/lock-file.ts';
import { DEAD_PID, holderText } from '../../support/processes/holder.ts';
import { ManualClock } from '../../support/service/service.ts';
import { withCall } from '../../support/system-calls.ts';

let dir = '';
let path = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-lock-'));
  path = join(dir, 'the.lock');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const IN_USE = 'The ledger in /l is in use: try again when that run has ended.';
const take = (more: Partial<LockOptions> = {}) =>
  LockFile.take(path, { what: 'the ledger in /l', clock: systemClock, waitMs: 0, ...more });

type Real = (...all: unknown[]) => unknown;
/** While `work` is done, `act` is called whenever a file with these words in its path is about to be looked for, or was found. */
const around = <T>(words: string, when: 'before' | 'found', act: () => void, work: () => Promise<T>) => {
  const look = (real: Real, of: unknown, ...rest: unknown[]) => {
    const isMeant = String(of).includes(words);
    if (isMeant && when === 'before') act();
    const found = real(of, ...rest);
    if (isMeant && when === 'found' && found !== undefined) act();
    return found;
  };
  return withCall(fs, 'lstatSync', look, work);
};

describe('a lock', () => {
  it('that was removed is held no more, and giving it back is no error', async () => {
    const clock = new ManualClock();
    const lock = await take({ clock });
    rmSync(path);
    expect(lock.isHeld()).toBe(false);
    lock.release();
    expect([clock.pending, readdirSync(dir)]).toEqual([0, []]);
  });

  it('that is given back is kept alive no longer', async () => {
    const clock = new ManualClock();
    const lock = await take({ clock });
    expect(clock.pending).toBe(1);
    lock.release();
    expect(clock.pending).toBe(0);
    await withLockFile(path, { what: 'it', clock, waitMs: 0 }, async () => expect(clock.pending).toBe(1));
    expect(clock.pending).toBe(0);
  });

  it('is waited for exactly as long as allowed, looking more rarely as time passes', async () => {
    writeFileSync(path, holderText());
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

  it('that is given back between two looks is taken', async () => {
    writeFileSync(path, holderText());
    const lock = await around('the.lock', 'found', () => removeIfThere(path), take);
    expect(lock.isHeld()).toBe(true);
    lock.release();
  });

  it('whose holder cannot be known is in use all the same, and nobody is named', async () => {
    writeFileSync(path, 'held');
    await expect(take()).rejects.toMatchObject({ message: IN_USE, where: { file: path } });
  });
});

describe.runIf(process.platform === 'linux')('the lock of a dead process', () => {
  const dead = holderText({ pid: DEAD_PID });
  const claimOf = (claimed: string) => `${claimed}.takeover-0123456789abcdef`;

  it('that somebody else has removed already is theirs to make, and the claim to it is given back', async () => {
    writeFileSync(path, dead);
    const taking = around('.takeover-', 'before', () => removeIfThere(path), take);
    await expect(taking).rejects.toMatchObject({ kind: 'transient', message: IN_USE });
    expect(readdirSync(dir)).toEqual([]);
  });

  it('whose claim is given back at this moment is left to its taker', async () => {
    writeFileSync(path, dead);
    writeFileSync(claimOf(path), holderText());
    const gone = () => removeIfThere(claimOf(path));
    await expect(around('.takeover-', 'found', gone, take)).rejects.toMatchObject({ kind: 'transient' });
    expect(readFileSync(path, 'utf8')).toBe(dead);
  });

  it.each([
    [2, true],
    [3, false],
  ])('and %i takers that died over it: got over %s', async (takers, isFreed) => {
    let last = path;
    writeFileSync(last, dead);
    for (let taker = 0; taker < takers; taker++) {
      last = claimOf(last);
      writeFileSync(last, dead);
    }
    const clock: Clock = { ...systemClock, sleep: async () => {} };
    const taken = await take({ clock, waitMs: 5_000 }).catch(() => undefined);
    expect(taken !== undefined).toBe(isFreed);
    expect(existsSync(claimOf(path))).toBe(!isFreed);
    taken?.release();
  });
});
