import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HEARTBEAT_MS } from '../../../src/fs/holder-file.ts';
import { isLeased, Lease } from '../../../src/fs/lease.ts';
import { DEAD_PID, holderText } from '../../support/processes/holder.ts';
import { ManualClock } from '../../support/service/service.ts';

const RUN = 'r0000000000000000';
const LONG_AGO = 1_000_000;
let dir = '';
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-lease-'));
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));
const leave = (text: string): string => {
  const path = join(dir, `${RUN}.lease`);
  writeFileSync(path, text);
  return path;
};

describe('a lease', () => {
  it('is held by a living process until it is released', () => {
    const lease = Lease.take(dir, new ManualClock());
    expect(isLeased(dir, lease.run)).toBe(true);
    lease.release();
    expect(isLeased(dir, lease.run)).toBe(false);
  });

  it.runIf(process.platform === 'linux')('ends with its process, and is not that of another under the same id', () => {
    for (const dead of [{ pid: DEAD_PID }, { started: '1' }]) {
      leave(holderText(dead));
      expect(isLeased(dir, RUN)).toBe(false);
    }
  });

  it.each([
    ['another machine', holderText({ host: 'elsewhere', pid: DEAD_PID })],
    ['another container under the same host name', holderText({ space: 'boot pid:[1]', pid: DEAD_PID })],
    ['an earlier version', '{"pid":4194999,"host":"h","began":""}'],
    ['a process that is writing it at this moment', ''],
  ])('of %s ends with its silence', (_name, text) => {
    const path = leave(text);
    expect(isLeased(dir, RUN)).toBe(true);
    for (const at of [LONG_AGO, 2 ** 32]) {
      utimesSync(path, at, at);
      expect(isLeased(dir, RUN)).toBe(false);
    }
  });

  it('is never silent while its process lives', () => {
    const clock = new ManualClock();
    const lease = Lease.take(dir, clock);
    const path = join(dir, `${lease.run}.lease`);
    utimesSync(path, LONG_AGO, LONG_AGO);
    clock.pass(HEARTBEAT_MS);
    writeFileSync(join(dir, 'now'), '');
    expect(clock.pending).toBe(1);
    lease.release();
    expect(clock.pending).toBe(0);
  });
});
