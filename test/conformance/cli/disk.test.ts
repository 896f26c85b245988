import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import type { CommandOutput } from '../../support/processes/command-line.ts';
import { systemError, withCall } from '../../support/system-calls.ts';

const WANTED = { from: daysBack(7), to: daysBack(2) };
const SMALL_KIB = 400;
const NO_MOUNT = 'this user may not mount a file system';
const DISK_TARGETS = STATEFUL_TARGETS.map(({ name }) => name);

let fixture: CliFixture;
const mounts: string[] = [];
afterEach(async () => {
  for (const at of mounts.splice(0)) spawnSync('umount', ['-l', at]);
  await fixture.close();
});

/** A file system of so many KiB; undefined where this user may not mount one. */
function smallDisk(kib: number): string | undefined {
  const at = join(fixture.dir, `disk-${mounts.length}`);
  mkdirSync(at, { mode: 0o700 });
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k,mode=700`, 'none', at]).status !== 0) return undefined;
  mounts.push(at);
  return at;
}

const remount = (at: string, kib: number) => spawnSync('mount', ['-o', `remount,size=${kib}k`, at]);

describe('a full disk', () => {
  it('of the spool: exit 3 naming the folder, the table stays whole, the next run continues', async (context) => {
    fixture = await CliFixture.start({}, { rowsPerDay: 1_500 });
    const disk = smallDisk(SMALL_KIB);
    if (disk === undefined) return context.skip(NO_MOUNT);
    const ended = await fixture.sync({ spool_dir: disk, max_concurrent_exports: 1 });
    expect(ended.code, ended.stderr).toBe(3);
    expect(ended.stderr).toMatch(
      /The disk of the spool folder .+disk-0.* is full \(ENOSPC\): make room or set spool_dir/,
    );
    expect(fixture.spooled(disk)).toEqual([]);
    remount(disk, 524_288);
    expect((await fixture.sync({ spool_dir: disk })).code).toBe(0);
    expect(await fixture.rows()).toBe(fixture.sim.countRows(WANTED));
  });

  it.for(DISK_TARGETS)(
    'of %s: exit 3, what was committed stays whole, and the next run loads the other days',
    async (target, context) => {
      fixture = await CliFixture.start({}, { rowsPerDay: 500 });
      const disk = smallDisk(target === 'duckdb' ? SMALL_KIB : 120);
      if (disk === undefined) return context.skip(NO_MOUNT);
      const place = join(disk, target);
      const argv = fixture.syncInto(target, place, { max_concurrent_exports: 1 });
      const ended = await fixture.run(argv);
      expect(ended.code, ended.stderr).toBe(3);
      expect(ended.stderr).toMatch(
        /The disk of \S+ is full.*: make room and run again; what was committed is kept, and the next run does the rest\./,
      );
      remount(disk, 262_144);
      const next = await fixture.run(argv);
      expect(next.code, next.stderr).toBe(0);
      expect(await fixture.run(['verify', target, place, '--json'])).toMatchObject({ code: 0 });
      expect(summaryIn(next)).toMatchObject({ next_from_date: daysBack(1) });
    },
  );
});

describe('a disk that fails', () => {
  const failing = (call: string, code: string, part: string, work: () => Promise<CommandOutput>) =>
    withCall(
      promises,
      call,
      (real, ...all) => (String(all).includes(part) ? Promise.reject(systemError(code)) : real(...all)),
      work,
    );

  it('under a download: exit 3 names the spool folder, and the next run loads the other days', async () => {
    fixture = await CliFixture.start();
    const ended = await failing('open', 'EIO', '.csv', () => fixture.sync());
    expect([ended.code, ended.stderr]).toEqual([
      3,
      expect.stringMatching(/The spool folder \S+ failed \(EIO\): try again later; what was stored before is complete/),
    ]);
    expect((await fixture.sync()).code).toBe(0);
    expect(await fixture.rows()).toBe(fixture.sim.countRows(WANTED));
  });

  it('when a run cleans up after itself: no defect, but the code of the disk', async () => {
    fixture = await CliFixture.start();
    const argv = fixture.syncInto('delta', join(fixture.dir, 'lake'), {});
    for (const [code, exit] of [
      ['EROFS', 2],
      ['EIO', 3],
    ] as const) {
      const ended = await failing('rm', code, 'dfinery-spool-', () => fixture.run(argv));
      expect([ended.code, ended.stderr]).toEqual([exit, expect.stringContaining(`(${code})`)]);
    }
    expect((await fixture.run(argv)).code).toBe(0);
  });
});

it('a location that cannot be written is named with exit 2: spool, folder or file of the database', async () => {
  fixture = await CliFixture.start();
  const plain = join(fixture.dir, 'plain.txt');
  writeFileSync(plain, 'a text that is no database, and long enough to be read as one, perhaps. '.repeat(200));
  const spool = await fixture.sync({ spool_dir: join(plain, 'spool') });
  expect([spool.code, spool.stderr]).toEqual([2, expect.stringContaining(join(plain, 'spool'))]);
  const missing = join(fixture.dir, 'no', 'such', 'folder', 'x.duckdb');
  for (const file of [missing, join(plain, 'x.duckdb'), plain, fixture.dir]) {
    const ended = await fixture.run(['sync', 'duckdb', file, '--config', fixture.config(), '--json']);
    expect([ended.code, ended.stderr], ended.stderr).toEqual([2, expect.stringContaining(file)]);
    expect(summaryIn(ended)).toMatchObject({ days: 0, exports: 0 });
  }
  expect(fixture.sim.requests()).toEqual([]);
  rmSync(plain);
});

it.for(DISK_TARGETS)(
  'a disk that is mounted for reading alone ends sync %s with exit 2 before its first export, and nothing is lost',
  async (target, context) => {
    fixture = await CliFixture.start();
    const disk = smallDisk(65_536);
    if (disk === undefined) return context.skip(NO_MOUNT);
    const place = join(disk, target);
    const until = (end_date: string) => fixture.run(fixture.syncInto(target, place, { end_date }));
    const mountAgain = (how: string) => spawnSync('mount', ['-o', `remount,${how}`, disk]);
    mountAgain('ro');
    const first = await until(daysBack(4));
    expect([first.code, first.stderr]).toEqual([2, expect.stringContaining(place)]);
    expect(fixture.sim.requests()).toEqual([]);
    mountAgain('rw');
    expect(await until(daysBack(4))).toMatchObject({ code: 0 });
    mountAgain('ro');
    const requests = fixture.sim.requests().length;
    const ended = await until(daysBack(2));
    expect([ended.code, ended.stderr]).toEqual([2, expect.stringContaining(place)]);
    expect(fixture.sim.requests()).toHaveLength(requests);
    expect(await fixture.run(['verify', target, place])).toMatchObject({ code: 0 });
    mountAgain('rw');
    const last = await until(daysBack(2));
    expect(summaryIn(last)).toMatchObject({ exit: 0, next_from_date: daysBack(1) });
  },
);
