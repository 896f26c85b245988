import { constants, lstatSync, statSync } from 'node:fs';
import { access, readdir, readFile, unlink, utimes } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { systemClock } from '../base/clock.ts';
import { configError, undefinedIfAbsent } from '../base/errors.ts';
import { compareUtf8 } from '../base/text.ts';
import { createFile, isLinkUnsupported, replaceFile } from '../fs/atomic-file.ts';
import { COMMITTED_IS_KEPT, withDiskErrors } from '../fs/disk-failure.ts';
import { makeFolders, syncFolder } from '../fs/folders.ts';
import { checkLocalPath } from '../fs/local-path.ts';
import { giveToFolderOwner, PRIVATE_FILE_MODE, PRIVATE_FOLDER_MODE, setMode } from '../fs/permissions.ts';
import { type ErasePredicate, listAll, OWN_FOLDER, type Storage, type StoredObject } from './storage.ts';

const OTHERS_MAY_READ = 0o044;

/** A folder of a local disk. An object is created by a hard link to a complete file that is synced to disk. */
export class DiskStorage implements Storage {
  /** Absolute: DuckDB names a file whose relative path begins with `[`, `*` or `?` differently than it was given. */
  readonly address: string;
  readonly workFolder: string;

  /** Throws a configuration failure for an address that is no path. */
  constructor(folder: string) {
    checkLocalPath(folder);
    this.address = resolve(folder);
    this.workFolder = this.fullPath(`${OWN_FOLDER}/tmp`);
  }

  fullPath(path: string): string {
    return join(this.address, path);
  }

  async read(path: string): Promise<Buffer | undefined> {
    return this.#withReadErrors(() => readFile(this.fullPath(path)).catch(undefinedIfAbsent));
  }

  async *list(folder: string, after = ''): AsyncGenerator<StoredObject, void, undefined> {
    const paths = await this.#withReadErrors(() => this.#filesBelow(folder));
    for (const path of paths.filter((path) => compareUtf8(path, after) > 0).sort(compareUtf8)) {
      const stat = await this.#withReadErrors(async () => lstatSync(this.fullPath(path), { throwIfNoEntry: false }));
      if (stat !== undefined) yield { path, modified: stat.mtimeMs };
    }
  }

  create(path: string, text: string): Promise<boolean> {
    return this.#withWriteErrors(async () => {
      try {
        const { fullPath, mode } = await this.#prepareFile(path);
        return await createFile(fullPath, { text, mode });
      } catch (error) {
        if (!isLinkUnsupported(error)) throw error;
        throw configError(
          `${this.address} is on a file system without hard links, which a commit needs: give a folder on another.`,
          { cause: error },
        );
      }
    });
  }

  write(path: string, text: string): Promise<void> {
    return this.#withWriteErrors(async () => {
      const { fullPath, mode } = await this.#prepareFile(path);
      return replaceFile(fullPath, { text, mode });
    });
  }

  moveIn(localPath: string, path: string): Promise<void> {
    return this.#withWriteErrors(async () => {
      const { fullPath, mode } = await this.#prepareFile(path);
      setMode(localPath, mode);
      // As in a bucket its time is that of its arrival, by which others know how long no commit has named it.
      // Where all files belong to another user, as on SMB, it cannot be set.
      const now = systemClock.now() / 1_000;
      await utimes(localPath, now, now).catch(() => {});
      giveToFolderOwner(localPath, dirname(fullPath));
      await replaceFile(fullPath, { finishedPath: localPath });
    });
  }

  async localFile(path: string): Promise<string> {
    return this.fullPath(path);
  }

  remove(paths: readonly string[]): Promise<void> {
    return this.#withWriteErrors(async () => {
      const folders = new Set<string>();
      for (const path of paths) {
        const file = this.fullPath(path);
        // Not `rm`: for a file that it may not remove, it reports the error code of removing a folder.
        await unlink(file).catch(undefinedIfAbsent);
        folders.add(dirname(file));
      }
      for (const folder of folders) await syncFolder(folder);
    });
  }

  async erase(folder: string, shouldErase: ErasePredicate): Promise<void> {
    const objects = (await listAll(this, folder)).filter(shouldErase);
    await this.remove(objects.map(({ path }) => path));
  }

  async checkErasable(paths: readonly string[]): Promise<void> {
    const folders = new Set(paths.map((path) => dirname(this.fullPath(path))));
    for (const folder of folders) {
      await access(folder, constants.W_OK | constants.X_OK).catch((cause) => {
        const message = `${folder} cannot be written to: give this user the right to. Nothing was changed.`;
        throw configError(message, { cause });
      });
    }
  }

  close(): void {}

  /** The paths of the files and links below a folder; none of a folder that is not there, or no longer. */
  async #filesBelow(folder: string): Promise<string[]> {
    const entries = (await readdir(this.fullPath(folder), { withFileTypes: true }).catch(undefinedIfAbsent)) ?? [];
    const paths = entries.map((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? this.#filesBelow(path) : [path];
    });
    return (await Promise.all(paths)).flat();
  }

  /** Makes the folders of a path. Gives the full path, and the mode of a new file there. */
  async #prepareFile(path: string): Promise<{ readonly fullPath: string; readonly mode: number }> {
    const fullPath = this.fullPath(path);
    await makeFolders(this.address);
    // Whoever may read the folder of the place may read its files, except those in `_dfinery`.
    const readBits = path.startsWith(`${OWN_FOLDER}/`) ? 0 : statSync(this.address).mode & OTHERS_MAY_READ;
    // Who may read a folder may also enter it.
    const searchBits = readBits >> 2;
    await makeFolders(dirname(fullPath), PRIVATE_FOLDER_MODE | readBits | searchBits);
    return { fullPath, mode: PRIVATE_FILE_MODE | readBits };
  }

  #withReadErrors<T>(work: () => Promise<T>): Promise<T> {
    return withDiskErrors({ path: this.address, verb: 'used' }, work());
  }

  #withWriteErrors<T>(work: () => Promise<T>): Promise<T> {
    return withDiskErrors({ path: this.address, consequence: COMMITTED_IS_KEPT }, work());
  }
}
