import {
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
import {
  createHolderFile,
  HEARTBEAT_MS,
  isAbandoned,
  isMomentary,
  readHolderFile,
  removeIfThere,
  startHeartbeat,
} from '../../../src/fs/holder-file.ts';
import { OWN_IDENTITY } from '../../../src/fs/process-identity.ts';
import { DEAD_PID, holderText } from '../../support/processes/holder.ts';

let dir: string;
let path: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'holder-'));
  path = join(dir, 'lock');
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const elsewhere = { host: 'another', pid: 1 };
/** Sets the time of the last heartbeat to so many seconds ago. */
const age = (seconds: number) => utimesSync(path, new Date(), new Date(Date.now() - seconds * 1_000));
const holder = () => readHolderFile(path) ?? expect.unreachable('no holder');

describe('the file of a holder', () => {
  it('is made once, for its owner alone, and says who made it', () => {
    const token = createHolderFile(path);
    expect(token).toMatch(/^[0-9a-f]{16}$/);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(createHolderFile(path)).toBeUndefined();
    expect(readHolderFile(path)).toMatchObject({ token, identity: OWN_IDENTITY });
    expect(Math.abs(holder().beatAt - Date.now())).toBeLessThan(60_000);
  });

  it('is nobody’s where there is none, and is never made or read through a link', () => {
    expect(readHolderFile(path)).toBeUndefined();
    symlinkSync(join(dir, 'target'), path);
    expect(createHolderFile(path)).toBeUndefined();
    expect(() => readHolderFile(path)).toThrow(/ELOOP/);
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it('that cannot be made is the system’s error', () => {
    expect(() => createHolderFile(join(dir, 'none', 'lock'))).toThrow(/ENOENT/);
    expect(() => removeIfThere(dir)).toThrow();
    expect(() => removeIfThere(path)).not.toThrow();
  });

  it.each([
    ['is empty', ''],
    ['is no JSON', 'held'],
    ['has no token', JSON.stringify(OWN_IDENTITY)],
    ['has a short token', holderText().replace('0123456789abcdef', 'abc')],
    ['has a long token', holderText().replace('0123456789abcdef', '0123456789abcdef0')],
    ['has no identity', '{"token":"0123456789abcdef"}'],
    ['has a number for a token', holderText().replace('"0123456789abcdef"', '1234567890123456')],
  ])('that %s has no identity, and a token of its own that changes with it', (_how, text) => {
    writeFileSync(path, text);
    const first = holder();
    expect(first.identity).toBeUndefined();
    expect(first.token).toMatch(/^[0-9a-f]{16}$/);
    expect(holder().token).toBe(first.token);
    age(5);
    expect(holder().token).not.toBe(first.token);
  });
});

describe('a holder is dead', () => {
  it('where that can be seen at once; one that lives is not, however long it is silent', () => {
    writeFileSync(path, holderText({ pid: DEAD_PID }));
    expect(isAbandoned(holder(), path)).toBe(true);
    writeFileSync(path, holderText());
    age(3_600);
    expect(isAbandoned(holder(), path)).toBe(false);
  });

  it('where it cannot be seen, after a minute of silence by the clock of the file system, in either direction', () => {
    for (const text of [holderText(elsewhere), '']) {
      writeFileSync(path, text);
      expect(isAbandoned(holder(), path)).toBe(false);
      for (const [seconds, isDead] of [
        [50, false],
        [70, true],
        [-70, true],
      ] as const) {
        age(seconds);
        expect(isAbandoned(holder(), path), `${seconds} s`).toBe(isDead);
      }
    }
    expect(readdirSync(dir)).toEqual(['lock']);
  });

  it('a file of the clock, or a draft of a holder, that was left behind is known by its name', () => {
    for (const name of ['.time-0123456789ab.tmp', '.holder-0123456789ab.tmp']) expect(isMomentary(name)).toBe(true);
    for (const name of ['x.time-0123456789ab.tmp', '.time-0123456789ab.tmp2', '.time-01.tmp', 'lock'])
      expect(isMomentary(name)).toBe(false);
  });
});

describe('the heartbeat of a holder', () => {
  const beats = () => {
    const timers: { ms: number; callback: () => void }[] = [];
    const clock = {
      now: () => Date.now(),
      sleep: async () => {},
      after: (ms: number, callback: () => void) => {
        const timer = { ms, callback };
        timers.push(timer);
        return () => void timers.splice(timers.indexOf(timer), 1);
      },
    };
    return { clock, timers, beat: () => timers.shift()?.callback() };
  };

  it('renews the file until it is cancelled', () => {
    const { clock, timers, beat } = beats();
    const token = createHolderFile(path) ?? '';
    const stop = startHeartbeat(path, token, clock);
    expect(timers.map(({ ms }) => ms)).toEqual([HEARTBEAT_MS]);
    for (let i = 0; i < 2; i++) {
      age(50);
      beat();
      expect(Date.now() - holder().beatAt).toBeLessThan(30_000);
      expect(holder().token).toBe(token);
    }
    stop();
    expect(timers).toEqual([]);
  });

  it('ends where the file is somebody else’s or gone, and changes nothing of it', () => {
    const { clock, timers, beat } = beats();
    startHeartbeat(path, createHolderFile(path) ?? '', clock);
    writeFileSync(path, holderText(elsewhere));
    beat();
    expect(readFileSync(path, 'utf8')).toBe(holderText(elsewhere));
    expect(timers).toEqual([]);
    for (const text of ['', 'held']) {
      rmSync(path);
      startHeartbeat(path, createHolderFile(path) ?? '', clock);
      writeFileSync(path, text);
      beat();
      expect([timers, readFileSync(path, 'utf8')]).toEqual([[], text]);
    }
    rmSync(path);
    startHeartbeat(path, '0123456789abcdef', clock);
    beat();
    expect([timers, readdirSync(dir)]).toEqual([[], []]);
  });

  it('goes on where the disk refuses for a while', () => {
    const { clock, timers, beat } = beats();
    startHeartbeat(path, createHolderFile(path) ?? '', clock);
    rmSync(path);
    symlinkSync('nowhere', path);
    beat();
    expect(timers).toHaveLength(1);
  });
});
