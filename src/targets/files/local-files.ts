import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Engine } from '../../engine/session/engine.ts';
import type { Storage } from '../../storage/storage.ts';
import type { FileLayout } from './file-layout.ts';
import type { NewFile, TableFile } from './place-version.ts';

/** The files of a place on this machine: stored files to be read, and new ones, which a commit may store. */
export class LocalFiles {
  /** Reads and writes the files. */
  readonly engine: Engine;
  readonly layout: FileLayout;
  readonly #storage: Storage;
  /** That of the run. */
  readonly #folder: string;
  /** Where stored files are, by their paths in the storage. */
  readonly #localPaths = new Map<string, string>();

  constructor(engine: Engine, layout: FileLayout, storage: Storage, folder: string) {
    this.engine = engine;
    this.layout = layout;
    this.#storage = storage;
    this.#folder = folder;
  }

  /** A path at which no file is yet. */
  newLocalPath(): string {
    return join(this.#folder, randomUUID());
  }

  /** The local path of a new file, or of a stored one: on a disk the file itself, else a copy, made once. */
  async localPathOf({ path, localPath: newFilePath }: TableFile & Partial<NewFile>): Promise<string> {
    const knownPath = newFilePath ?? this.#localPaths.get(path);
    if (knownPath !== undefined) return knownPath;
    // Errors of DuckDB name the folder of a copy: it tells the table, and the day.
    const copyPath = join(this.#folder, dirname(path), randomUUID());
    const localPath = await this.#storage.localFile(path, copyPath);
    this.#localPaths.set(path, localPath);
    return localPath;
  }

  /** Removes the copy of a stored file, if there is one, so that copies do not gather. */
  async removeCopy({ path }: TableFile): Promise<void> {
    const localPath = this.#localPaths.get(path);
    // On a disk it is the file itself.
    if (localPath === undefined || this.#storage.workFolder !== undefined) return;
    this.#localPaths.delete(path);
    await rm(localPath, { force: true });
  }
}
