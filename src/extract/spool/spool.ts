// This folder: the files of downloads on disk, including those that dead runs left.

import { createReadStream } from 'node:fs';
import { readdir, readFile, rename, rmdir, unlink, utimes } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Clock } from '../../base/clock.ts';
import { codeOf } from '../../base/errors.ts';
import { sha256 } from '../../base/json.ts';
import { attempted } from '../../base/retry.ts';
import { replaceFile } from '../../fs/atomic-file.ts';
import { acquireLease, isLeased, type Lease } from '../../fs/lock.ts';
import { makePrivateFolder } from '../../fs/private-folder.ts';
import type { ExportFile } from '../download/download.ts';
import { sweepRunFolders } from './run-folder.ts';
import { spoolFolders, sweepAll } from './spool-folders.ts';
import { type MakeRoom, SpoolWriter, spoolError } from './spool-writer.ts';

/** Attempts at a folder that other runs may remove while it is empty. */
const CLAIM_ATTEMPTS = 1_000;

/** The sidecar of a verified file for a later run. The run that renames or removes it owns both files. */
interface Sidecar {
  readonly v: 1;
  /** Hash of everything that can make two spool files of the same days differ. */
  readonly fingerprint: string;
  /** CRC-32 of the spool file, which is not synced: a power cut may lose some of its pages. */
  readonly spool_crc32: number;
  readonly part: Omit<ExportFile, 'path' | 'exports' | 'spoolCrc'>;
}

const SIDECAR_NAME = /^((r[0-9a-f]{16})-\d{6})\.json$/;

/**
 * The private folder in which one run stores its downloads; a later run uses the verified ones that it leaves.
 */
export class Spool {
  readonly folder: string;
  readonly #lease: Lease;
  readonly #fingerprint: string;
  readonly #clock: Clock;
  /** Paths of this run's spool files that have a sidecar and stay when the run ends. */
  readonly #reusable = new Set<string>();
  /** Stems of the reusable files that dead runs left, by export key. */
  #leftBehind = new Map<string, string[]>();
  #count = 0;

  private constructor(folder: string, lease: Lease, fingerprint: string, clock: Clock) {
    this.folder = folder;
    this.#lease = lease;
    this.#fingerprint = fingerprint;
    this.#clock = clock;
  }

  /**
   * Opens the folder of an export request, named by its hash, under `root` and removes the unusable files that dead
   * runs left there. `fingerprint` is a hash of everything that makes two spool files of the same days differ. Throws a
   * UserError that names the folder.
   */
  static async open(root: string, requestHash: string, fingerprint: string, clock: Clock): Promise<Spool> {
    // All users of a machine share its temporary folder: each gets a folder name of their own.
    const own = sha256([requestHash, process.getuid?.()]).slice(0, 16);
    const folder = join(resolve(root), `dfinery-elt-${own}`);
    let lease: Lease | undefined;
    try {
      lease = await claimFolder(folder, clock);
      await sweepAll(await spoolFolders(root), clock.now());
      await sweepRunFolders(root, clock.now());
      const spool = new Spool(folder, lease, fingerprint, clock);
      spool.#leftBehind = await findReusable(folder, fingerprint);
      return spool;
    } catch (error) {
      lease?.release();
      throw spoolError(error, folder);
    }
  }

  /** Makes a unique id; later ids sort after earlier ones. */
  nextId(): string {
    const stamp = new Date(this.#clock.now()).toISOString().replaceAll(/[-:.]/g, '');
    return `${stamp}-${this.#lease.run}-${String(++this.#count).padStart(6, '0')}`;
  }

  create(id: string, makeRoom?: MakeRoom): Promise<SpoolWriter> {
    return SpoolWriter.create(`${this.#stemOf(id)}.part`, this.folder, makeRoom);
  }

  /** Renames a finished file to `.csv` and returns its path. Not synced, since the sidecar's CRC reveals lost pages. */
  async complete(writer: SpoolWriter, id: string): Promise<string> {
    const path = `${this.#stemOf(id)}.csv`;
    this.#lease.checkHeld();
    await this.#onDisk(rename(writer.path, path));
    return path;
  }

  /** Throws a UserError that names the folder if the system refuses the work. */
  #onDisk<T>(work: Promise<T>): Promise<T> {
    return work.catch((error: unknown) => {
      throw spoolError(error, this.folder);
    });
  }

  #stemOf(id: string): string {
    return join(this.folder, `${this.#lease.run}-${id.slice(-6)}`);
  }

  /**
   * Writes the sidecar of a verified file, so that a later run can reuse it if this one ends before it is committed.
   */
  async saveForReuse(file: ExportFile): Promise<void> {
    const { path, exports: _exports, spoolCrc, scan, ...rest } = file;
    if (path === undefined) return;
    const stem = withoutEnding(path);
    const { idSample: _idSample, ...stored } = scan;
    const part = { ...rest, scan: stored };
    const sidecar: Sidecar = { v: 1, fingerprint: this.#fingerprint, spool_crc32: spoolCrc, part };
    this.#lease.checkHeld();
    await this.#onDisk(this.#date(path));
    await this.#onDisk(replaceFile(`${stem}.json`, JSON.stringify(sidecar)));
    this.#reusable.add(path);
  }

  /** Sets the time of a file by this run's clock, by which its age is counted. */
  async #date(path: string): Promise<void> {
    const now = this.#clock.now() / 1_000;
    await utimes(path, now, now);
  }

  /** True if a dead run left a reusable file of exactly this export. */
  hasReusable(key: string): boolean {
    return this.#leftBehind.has(key);
  }

  /**
   * Takes over the reusable file of an export, after a check of its CRC, and renames it to be this run's. Undefined if
   * it is damaged or if its receipt id is `committedId`, that of the last committed window.
   */
  async reuse(key: string, committedId: string | undefined): Promise<ExportFile | undefined> {
    const stems = this.#leftBehind.get(key) ?? [];
    this.#leftBehind.delete(key);
    for (const stem of stems) {
      const part = await this.#adopt(stem, key);
      if (part?.path === undefined) continue;
      this.#reusable.add(part.path);
      // A run committed it and died before it removed the file. If its days are wanted again, they are exported again.
      if (part.id !== committedId) return part;
      await this.discard(part);
    }
    return undefined;
  }

  /** Renames a reusable file and its sidecar to be this run's; undefined if another run was first, or they differ. */
  async #adopt(stem: string, key: string): Promise<ExportFile | undefined> {
    const own = this.#stemOf(this.nextId());
    try {
      await rename(`${stem}.json`, `${own}.json`);
      await rename(`${stem}.csv`, `${own}.csv`);
      const sidecar = await sidecarOf(own);
      const isWanted = sidecar?.fingerprint === this.#fingerprint && sidecar.part.key === key;
      if (isWanted && (await crcOf(`${own}.csv`)) === sidecar.spool_crc32) {
        return { ...sidecar.part, spoolCrc: sidecar.spool_crc32, path: `${own}.csv`, exports: 0 };
      }
    } catch {
      // Another run was first, or a file is missing.
    }
    await discardReusable(own);
    return undefined;
  }

  /** Removes the reusable files of ended runs that this run did not use; only those of one command if it is given. */
  async discardUnused(command?: string): Promise<void> {
    for (const stem of [...this.#leftBehind.values()].flat()) await discardReusable(stem, command);
    this.#leftBehind.clear();
  }

  /**
   * Removes one of the exports that ended runs left and this run has not used, the latest first; false if there is
   * none.
   */
  async discardLastUnused(): Promise<boolean> {
    const [key, stems = []] = [...this.#leftBehind].at(-1) ?? [];
    if (key === undefined) return false;
    this.#leftBehind.delete(key);
    for (const stem of stems) await discardReusable(stem);
    return true;
  }

  /** Removes a file of this run, with its sidecar, once it is committed or not needed. */
  async discard({ path }: Pick<ExportFile, 'path'>): Promise<void> {
    if (path === undefined) return;
    this.#reusable.delete(path);
    await unlink(`${withoutEnding(path)}.json`).catch(() => {});
    await unlink(path).catch(() => {});
  }

  /**
   * Renames a malformed body to a path that is kept for seven days, so that a person can inspect it; returns the path.
   */
  async keepForInspection(writer: SpoolWriter): Promise<string> {
    await writer.finish();
    const path = join(this.folder, `malformed-${this.nextId()}.csv`);
    await this.#onDisk(rename(writer.path, path));
    await this.#onDisk(this.#date(path));
    return path;
  }

  /** Removes this run's files except the reusable ones, and the folder if it is empty then. */
  async close(): Promise<void> {
    const names = await readdir(this.folder).catch(() => []);
    for (const name of names.filter((text) => text.startsWith(`${this.#lease.run}-`))) {
      const path = join(this.folder, name);
      if (!this.#reusable.has(`${withoutEnding(path)}.csv`)) await unlink(path).catch(() => {});
    }
    this.#lease.release();
    await rmdir(this.folder).catch(() => {});
  }
}

const withoutEnding = (path: string): string => path.replace(/\.[a-z]+$/, '');

/** Makes the folder and takes a lease in it. Until the lease is there, another run may remove the empty folder. */
function claimFolder(folder: string, clock: Clock): Promise<Lease> {
  const isGone = (error: unknown) => ['ENOENT', 'EEXIST'].includes(codeOf(error) ?? '');
  return attempted(CLAIM_ATTEMPTS, isGone, async () => {
    makePrivateFolder(folder, 'The spool folder');
    return acquireLease(folder, clock);
  });
}

/** Stems of reusable files by the key of their export, oldest first. Those of another fingerprint are removed. */
async function findReusable(folder: string, fingerprint: string): Promise<Map<string, string[]>> {
  const byKey = new Map<string, string[]>();
  for (const name of (await readdir(folder)).sort()) {
    const [, id, run] = SIDECAR_NAME.exec(name) ?? [];
    if (id === undefined || isLeased(folder, run)) continue;
    const stem = join(folder, id);
    const found = await sidecarOf(stem);
    if (found?.fingerprint === fingerprint) byKey.set(found.part.key, [...(byKey.get(found.part.key) ?? []), stem]);
    else await discardReusable(stem);
  }
  return byKey;
}

/** Removes a reusable file and its sidecar, unless another run is first; with `command` only one that it made. */
async function discardReusable(stem: string, command?: string): Promise<void> {
  if (command !== undefined && (await sidecarOf(stem))?.part.command !== command) return;
  try {
    await unlink(`${stem}.json`);
    await unlink(`${stem}.csv`);
  } catch {
    // Another run has taken it over, or it is not there.
  }
}

async function sidecarOf(stem: string): Promise<Sidecar | undefined> {
  try {
    const found = JSON.parse(await readFile(`${stem}.json`, 'utf8')) as Partial<Sidecar>;
    return found.v === 1 && found.part !== undefined && found.spool_crc32 !== undefined
      ? (found as Sidecar)
      : undefined;
  } catch {
    return undefined;
  }
}

async function crcOf(path: string): Promise<number> {
  let crc = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) crc = crc32(chunk as Uint8Array, crc);
  return crc;
}
