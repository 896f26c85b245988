import {
  existsSync,
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
import { basename, join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { ExportFile } from '../../../src/extract/download/download.ts';
import { Spool } from '../../../src/extract/spool/spool.ts';
import { purgeSpools, spoolFolders, sweepAll } from '../../../src/extract/spool/spool-folders.ts';
import { DEAD_PID, ownerText } from '../../support/processes/lock-owner.ts';
import { ManualClock } from '../../support/service/service.ts';

const NOW = Date.UTC(2026, 2, 10, 16, 1, 2, 345);
const DAY = 86_400_000;
const SCAN: ExportFile['scan'] = {
  header: ['a'],
  columns: [],
  rows: 1,
  suppressed: 0,
  longestRow: 2,
  hasDuplicateOrMissingIds: false,
  finalNewline: true,
  invalidUtf8: { cells: 0 },
  outLength: 4,
  eventNames: [],
};
/** Removes a folder again and again, as runs that end do, for a minute at most. */
const REMOVER = `
  const { rmdirSync } = require('node:fs');
  const { parentPort, workerData } = require('node:worker_threads');
  parentPort.postMessage('begun');
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (const end = Date.now() + 60_000; Date.now() < end; ) {
    try { rmdirSync(workerData); } catch {}
    Atomics.wait(pause, 0, 0, 1);
  }
`;

let root: string;
let clock: ManualClock;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'dfinery-files-'));
  clock = new ManualClock(NOW);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const open = (request = 'q', print = 'print') => Spool.open(root, request, print, clock);
const files = (spool: Spool) => readdirSync(spool.folder).sort();
/** A verified file of this spool that a later run may use. */
async function saved(spool: Spool, key: string, text = 'a\n1\n'): Promise<ExportFile> {
  const id = spool.nextId();
  const writer = await spool.create(id);
  writer.write(Buffer.from(text));
  const spoolCrc = await writer.finish();
  const path = await spool.complete(writer, id);
  const origin = { id, key, path, scan: SCAN, bytes: 4, sha256: 'x', sentAt: NOW, verifiedAt: '', exports: 3 };
  const part = { kind: 'file' as const, ...origin, spoolCrc, endDeclared: false };
  await spool.saveForReuse(part);
  return part;
}
/** Ends a run as a kill does: its files stay, its lease is that of a dead process. */
function kill(spool: Spool): void {
  const lease = files(spool).find((name) => name.endsWith('.lease')) ?? '';
  writeFileSync(join(spool.folder, lease), ownerText({ pid: DEAD_PID }));
}

describe('the spool of a run', () => {
  it('gives ids that sort by time and order, and files named by the run', async () => {
    const spool = await open();
    const ids = [spool.nextId(), spool.nextId()];
    clock.pass(1);
    ids.push(spool.nextId());
    expect(ids[0]).toMatch(/^20260310T160102345Z-r[0-9a-f]{16}-000001$/);
    expect(ids[1].slice(-6)).toBe('000002');
    expect([...ids].sort()).toEqual(ids);
    const writer = await spool.create(ids[1]);
    expect(basename(writer.path)).toBe(`${ids[1].slice(20)}.part`);
    await writer.finish();
    expect(basename(await spool.complete(writer, ids[1]))).toBe(`${ids[1].slice(20)}.csv`);
    await spool.close();
    expect(readdirSync(root)).toEqual([]);
  });

  it('is one folder per export request, private to this user', async () => {
    const [one, same, other] = [await open('q'), await open('q'), await open('r')];
    expect([one.folder === same.folder, one.folder === other.folder]).toEqual([true, false]);
    expect((await spoolFolders(root)).sort()).toEqual([one.folder, other.folder].sort());
    await one.close();
    expect(existsSync(one.folder)).toBe(true);
    await same.close();
    expect(existsSync(one.folder)).toBe(false);
    await other.close();
  });

  it('is opened while others remove its empty folder repeatedly', async () => {
    const first = await open();
    await first.close();
    const remover = new Worker(REMOVER, { eval: true, workerData: first.folder });
    try {
      await new Promise((resolve) => remover.once('message', resolve));
      for (let i = 0; i < 200; i++) await (await open()).close();
    } finally {
      await remover.terminate();
    }
    expect(readdirSync(root)).toEqual([]);
  });

  it('keeps reusable files when it ends, dated by its own clock, and nothing else', async () => {
    const spool = await open();
    const part = await saved(spool, 'k');
    const broken = await spool.create(spool.nextId());
    const unsaved = await spool.create(spool.nextId());
    const id = spool.nextId();
    await unsaved.finish();
    await spool.complete(unsaved, id);
    await broken.close();
    const discarded = await saved(spool, 'l');
    await spool.discard(discarded);
    await spool.close();
    const names = files(spool);
    expect(names).toEqual([basename(part.path ?? ''), basename(part.path ?? '').replace('.csv', '.json')].sort());
    // A sidecar is judged by the time of its file.
    expect(statSync(part.path ?? '').mtimeMs).toBe(NOW);
    const sidecar = JSON.parse(readFileSync(join(spool.folder, names[1]), 'utf8'));
    expect(sidecar).toMatchObject({ v: 1, fingerprint: 'print', part: { id: part.id, key: 'k' } });
    expect(sidecar.part).not.toHaveProperty('path');
    expect(sidecar.part).not.toHaveProperty('exports');
    await spool.saveForReuse({ ...part, path: undefined });
    await spool.discard({ ...part, path: undefined });
  });

  it('is given up once another run took this one for dead, and its files with it', async () => {
    const spool = await open();
    const id = spool.nextId();
    const writer = await spool.create(id);
    await writer.finish();
    kill(spool);
    await purgeSpools([spool.folder]);
    await expect(spool.complete(writer, id)).rejects.toMatchObject({
      exitCode: 3,
      message: expect.stringContaining(`taken over the files of this run in ${spool.folder}`),
    });
    await spool.close();
  });

  it('keeps a malformed body under its own name, dated by its clock', async () => {
    const spool = await open();
    const writer = await spool.create(spool.nextId());
    writer.write(Buffer.from('broken'));
    const path = await spool.keepForInspection(writer);
    expect(basename(path)).toMatch(/^malformed-20260310T160102345Z-r[0-9a-f]{16}-000002\.csv$/);
    await spool.close();
    expect([readFileSync(path, 'utf8'), statSync(path).mtimeMs]).toEqual(['broken', NOW]);
  });
});

describe('a spooled file of a dead run', () => {
  it('is reused once, unchanged, by the next run of the same request', async () => {
    const dead = await open();
    const part = await saved(dead, 'k');
    kill(dead);
    const next = await open();
    expect([next.hasReusable('k'), next.hasReusable('l')]).toEqual([true, false]);
    expect(await next.reuse('l', undefined)).toBeUndefined();
    const reused = await next.reuse('k', undefined);
    expect(reused).toEqual({ ...part, path: reused?.path, exports: 0 });
    expect(reused?.path).not.toBe(part.path);
    expect(readFileSync(reused?.path ?? '', 'utf8')).toBe('a\n1\n');
    expect([next.hasReusable('k'), await next.reuse('k', undefined)]).toEqual([false, undefined]);
    await next.close();
    const third = await open();
    expect(third.hasReusable('k')).toBe(true);
    await third.discardUnused();
    expect(third.hasReusable('k')).toBe(false);
    await third.close();
    expect(readdirSync(root)).toEqual([]);
  });

  it('is reused in order, and not when committed', async () => {
    const dead = await open();
    const [first, second] = [await saved(dead, 'k', 'a\n1\n'), await saved(dead, 'k', 'a\n2\n')];
    kill(dead);
    const next = await open();
    expect((await next.reuse('k', first.id))?.id).toBe(second.id);
    expect(files(next).filter((name) => name.endsWith('.csv'))).toHaveLength(1);
    await next.discardUnused();
    await next.close();
  });

  const damages: [string, (path: string) => void][] = [
    ['other bytes', (path) => writeFileSync(path, 'a\n9\n')],
    ['no bytes', (path) => writeFileSync(path, '')],
    ['no sidecar', (path) => rmSync(path.replace('.csv', '.json'))],
    ['no file', (path) => rmSync(path)],
    ['another version', (path) => edit(path, { v: 2 })],
    ['no CRC', (path) => edit(path, { spool_crc32: undefined })],
    ['nothing of the part', (path) => edit(path, { part: undefined })],
    ['half a sidecar', (path) => writeFileSync(path.replace('.csv', '.json'), '{"v":1,')],
    ['another print', (path) => edit(path, { fingerprint: 'other' })],
  ];
  const edit = (path: string, more: object) => {
    const sidecar = path.replace('.csv', '.json');
    writeFileSync(sidecar, JSON.stringify({ ...JSON.parse(readFileSync(sidecar, 'utf8')), ...more }));
  };
  it.each(damages)('is removed unused with %s', async (_what, damage) => {
    const dead = await open();
    const { path } = await saved(dead, 'k');
    kill(dead);
    damage(path ?? '');
    for (const name of files(dead)) utimesSync(join(dead.folder, name), NOW / 1_000, NOW / 1_000);
    const next = await open();
    expect(await next.reuse('k', undefined)).toBeUndefined();
    await next.close();
    expect(readdirSync(root)).toEqual([]);
  });

  it.each(['export', 'print'])(
    'is not reused if it was replaced by that of another %s between two checks',
    async (what) => {
      const dead = await open();
      const part = await saved(dead, 'k');
      kill(dead);
      const next = await open();
      const { path: _path, ...rest } = part;
      edit(part.path ?? '', what === 'print' ? { fingerprint: 'other' } : { part: { ...rest, key: 'other' } });
      expect(await next.reuse('k', undefined)).toBeUndefined();
      await next.close();
      expect(readdirSync(root)).toEqual([]);
    },
  );

  it('is left to the process that took it first', async () => {
    const dead = await open();
    const { path } = await saved(dead, 'k');
    kill(dead);
    const [one, other] = [await open(), await open()];
    expect(await other.reuse('k', undefined)).toBeDefined();
    expect(await one.reuse('k', undefined)).toBeUndefined();
    await one.close();
    expect(files(other).filter((name) => /\.(csv|json)$/.test(name))).toHaveLength(2);
    expect(existsSync(path ?? '')).toBe(false);
    await other.close();
    const [two, three] = [await open(), await open()];
    expect(await three.reuse('k', undefined)).toBeDefined();
    await two.discardUnused();
    expect(files(three).filter((name) => /\.(csv|json)$/.test(name))).toHaveLength(2);
    await two.close();
    await three.discardUnused();
    await three.close();
  });

  it('is left alone while its run is alive', async () => {
    const living = await open();
    const part = await saved(living, 'k');
    const next = await open('q', 'another print');
    expect(next.hasReusable('k')).toBe(false);
    await next.discardUnused();
    await next.close();
    expect(existsSync(part.path ?? '')).toBe(true);
    await living.close();
  });
});

describe('sweeping', () => {
  const DEAD = 'r0123456789abcdef';
  const LIVING = 'rfedcba9876543210';
  async function folderWith(names: readonly string[], ageMs: number): Promise<string> {
    const spool = await open();
    const { folder } = spool;
    const lease = files(spool)[0];
    await saved(spool, 'k');
    await spool.close();
    for (const name of files(spool)) rmSync(join(folder, name));
    expect(lease).toMatch(/\.lease$/);
    writeFileSync(join(folder, `${LIVING}.lease`), ownerText());
    for (const name of names) {
      writeFileSync(join(folder, name), 'x');
      utimesSync(join(folder, name), (NOW - ageMs) / 1_000, (NOW - ageMs) / 1_000);
    }
    return folder;
  }
  const pair = (run: string) => [`${run}-000001.csv`, `${run}-000001.json`];
  const odd = [
    `${DEAD}-000002.csv`,
    `${DEAD}-000003.json`,
    `${DEAD}-000004.part`,
    `.${DEAD}-000005.json.0123456789ab.tmp`,
  ];
  const foreign = ['notes.csv', `${DEAD}-1.csv`, `x${DEAD}-000001.csv`, `${DEAD}-000001.csv2`];

  it('removes unusable files, and keeps usable ones for seven days', async () => {
    const folder = await folderWith(
      [...pair(DEAD), ...odd, ...pair(LIVING), `${LIVING}-000002.part`, 'malformed-1.csv', ...foreign],
      7 * DAY,
    );
    await sweepAll([folder], NOW);
    const kept = [...pair(DEAD), ...pair(LIVING), `${LIVING}-000002.part`, 'malformed-1.csv', ...foreign];
    expect(readdirSync(folder).sort()).toEqual([...kept, `${LIVING}.lease`].sort());
    await sweepAll([folder, join(root, 'none')], NOW + 1);
    const living = [...pair(LIVING), `${LIVING}-000002.part`, `${LIVING}.lease`];
    expect(readdirSync(folder).sort()).toEqual([...living, ...foreign].sort());
  });

  it('removes usable files that a clock has dated more than seven days ahead', async () => {
    const folder = await folderWith([...pair(DEAD), 'malformed-1.csv'], -7 * DAY);
    await sweepAll([folder], NOW);
    expect(readdirSync(folder)).toHaveLength(4);
    await sweepAll([folder], NOW - 1);
    expect(readdirSync(folder)).toEqual([`${LIVING}.lease`]);
  });

  it('for a purge removes every file of dead runs at once, and of live runs what a later run would load', async () => {
    const folder = await folderWith([...pair(DEAD), ...odd, 'malformed-1.csv', ...pair(LIVING)], 0);
    expect(await purgeSpools([folder])).toEqual([]);
    const csv = pair(LIVING).filter((name) => name.endsWith('.csv'));
    expect(readdirSync(folder).sort()).toEqual([...csv, `${LIVING}.lease`].sort());
    rmSync(join(folder, `${LIVING}.lease`));
    expect(await purgeSpools([folder, join(root, 'none')])).toEqual([]);
    expect(existsSync(folder)).toBe(false);
    symlinkSync(folder, folder);
    expect(await purgeSpools([folder])).toEqual([folder]);
  });

  it('removes the lease of a dead run', async () => {
    const folder = await folderWith([], 0);
    writeFileSync(join(folder, `${DEAD}.lease`), ownerText({ pid: DEAD_PID }));
    await sweepAll([folder], NOW);
    expect(readdirSync(folder)).toEqual([`${LIVING}.lease`]);
  });
});
