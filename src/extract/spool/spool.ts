import { readdir, rename, rmdir, unlink, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { codeOf } from '../../base/errors.ts';
import { Lease } from '../../fs/lease.ts';
import { isPrivateFolder, makePrivateFolder, ownerOf } from '../../fs/private-folder.ts';
import type { Verified } from '../download/verified.ts';
import { sha256 } from '../question.ts';
import { adopt, discardKept, readKept, sidecarOf, writeKept } from './kept.ts';
import { sweepRunFolders } from './run-folder.ts';
import { spoolFailure } from './spool-failure.ts';
import { SpoolWriter } from './spool-writer.ts';
import { sweepAll } from './sweep.ts';

/** Chances for a folder that others may remove under our hands. */
const CLAIM_TRIES = 100;
const OURS = /^dfinery-elt-[0-9a-f]{16}$/;

/** Paths of the spool folders (one per question) under a spool directory. */
export async function spoolFolders(root: string): Promise<string[]> {
  const names = await readdir(root).catch(() => []);
  const folders: string[] = [];
  for (const name of names.filter((text) => OURS.test(text))) {
    if (isPrivateFolder(join(root, name))) folders.push(join(root, name));
  }
  return folders;
}

/** Paths of folders of such a name that are not this user's, or that others may look into. */
export async function foreignSpoolFolders(root: string): Promise<string[]> {
  const names = await readdir(root).catch(() => []);
  const paths = names.filter((text) => OURS.test(text)).map((name) => join(root, name));
  return paths.filter((path) => ownerOf(path) === 'others').sort();
}

/** The folder in which one run keeps its downloads (S11, S40). */
export class Spool {
  readonly folder: string;
  readonly #lease: Lease;
  readonly #fingerprint: string;
  readonly #clock: Clock;
  readonly #kept = new Set<string>();
  readonly #left: Map<string, string[]>;
  #count = 0;

  private constructor(folder: string, lease: Lease, fingerprint: string, clock: Clock, left: Map<string, string[]>) {
    this.#left = left;
    this.folder = folder;
    this.#lease = lease;
    this.#fingerprint = fingerprint;
    this.#clock = clock;
  }

  /**
   * Opens the folder of a question under `root`, with what dead runs left there swept away. `fingerprint` names all that
   * makes two spools of the same days differ. Throws a Failure that names the folder.
   */
  static async open(root: string, question: string, fingerprint: string, clock: Clock): Promise<Spool> {
    // Users of one machine share its temporary folder, not each other's files.
    const own = sha256([question, process.getuid?.()]).slice(0, 16);
    const folder = join(root, `dfinery-elt-${own}`);
    let lease: Lease | undefined;
    try {
      lease = await claim(folder, clock);
      await sweepAll(await spoolFolders(root), clock.now());
      await sweepRunFolders(root, clock.now());
      return new Spool(folder, lease, fingerprint, clock, await readKept(folder, fingerprint));
    } catch (error) {
      lease?.release();
      throw spoolFailure(error, folder);
    }
  }

  /** A new id: unique, later ones sort after earlier ones. */
  nextId(): string {
    const stamp = new Date(this.#clock.now()).toISOString().replaceAll(/[-:.]/g, '');
    return `${stamp}-${this.#lease.run}-${String(++this.#count).padStart(6, '0')}`;
  }

  create(id: string): Promise<SpoolWriter> {
    return SpoolWriter.create(join(this.folder, `${fileName(this.#lease.run, id)}.part`), this.folder);
  }

  /** Gives a finished file its lasting name. */
  async settle(writer: SpoolWriter, id: string): Promise<string> {
    const path = join(this.folder, `${fileName(this.#lease.run, id)}.csv`);
    await rename(writer.path, path);
    return path;
  }

  /** Makes a verified file outlive this run, should it end before the file is committed. */
  async keep(part: Verified, spoolCrc: number): Promise<void> {
    if (part.path === undefined) return;
    await writeKept(part, part.path, { fingerprint: this.#fingerprint, spoolCrc }).catch((error: unknown) => {
      throw spoolFailure(error, this.folder);
    });
    const now = this.#clock.now() / 1_000;
    for (const path of [part.path, sidecarOf(part.path)]) await utimes(path, now, now);
    this.#kept.add(part.path);
  }

  /** Whether a dead run left a file for this very export. */
  has(key: string): boolean {
    return this.#left.has(key);
  }

  /** That file, checked byte for byte, ours from now on; undefined when it is not whole or was committed already. */
  async take(key: string, committed: string | undefined): Promise<Verified | undefined> {
    const paths = this.#left.get(key) ?? [];
    this.#left.delete(key);
    for (const path of paths) {
      const target = join(this.folder, fileName(this.#lease.run, this.nextId()));
      const part = await adopt(path, target, key, this.#fingerprint);
      if (part?.path === undefined) continue;
      this.#kept.add(part.path);
      // Committed by a run that died before it could remove the file: its days are read anew, if they are wanted.
      if (part.id !== committed) return part;
      await this.discard(part);
    }
    return undefined;
  }

  /** Removes what dead runs of the question left and this one had no use for. */
  async discardLeft(): Promise<void> {
    for (const path of [...this.#left.values()].flat()) await discardKept(path);
    this.#left.clear();
  }

  /** Removes a file that is committed or not wanted. */
  async discard(part: Verified): Promise<void> {
    if (part.path === undefined) return;
    this.#kept.delete(part.path);
    await unlink(sidecarOf(part.path)).catch(() => {});
    await unlink(part.path).catch(() => {});
  }

  /** Keeps a broken body for a person to look at, for seven days; returns its path. */
  async keepForInspection(writer: SpoolWriter): Promise<string> {
    await writer.close();
    const path = join(this.folder, `malformed-${this.nextId()}.csv`);
    await rename(writer.path, path);
    const now = this.#clock.now() / 1_000;
    await utimes(path, now, now);
    return path;
  }

  /** Removes every file of this run that is not kept, and the folder when nothing is left in it. */
  async close(): Promise<void> {
    const names = await readdir(this.folder).catch(() => []);
    for (const name of names.filter((text) => text.startsWith(`${this.#lease.run}-`))) {
      const path = join(this.folder, name);
      if (!this.#kept.has(path.replace(/\.json$/, '.csv'))) await unlink(path).catch(() => {});
    }
    this.#lease.release();
    await rmdir(this.folder).catch(() => {});
  }
}

const fileName = (run: string, id: string): string => `${run}-${id.slice(-6)}`;

/** Other runs remove the folder while it is empty, at any time before our lease is in it. */
async function claim(folder: string, clock: Clock): Promise<Lease> {
  for (let tries = 1; ; tries++) {
    try {
      makePrivateFolder(folder, 'The spool folder', 'set spool_dir to another folder');
      return Lease.take(folder, clock);
    } catch (error) {
      const isGone = ['ENOENT', 'EEXIST'].includes(codeOf(error) ?? '');
      if (!isGone || tries === CLAIM_TRIES) throw error;
    }
  }
}
