import { copyFile, link, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { codeOf } from '../../base/errors.ts';
import { RunFolder } from '../../extract/spool/run-folder.ts';
import type { SpoolFile, Window } from '../../extract/window.ts';

/** Keeps the files of windows on disk after the extraction removed its own: as hard links, or copies where links are refused. */
export class WindowStore {
  readonly #own: RunFolder;
  #files = 0;

  constructor(own: RunFolder) {
    this.#own = own;
  }

  get folder(): string {
    return this.#own.path;
  }

  /** A window over files that stay until `release`. */
  async keep(window: Window): Promise<Window> {
    const files: SpoolFile[] = [];
    for (const file of window.files) {
      const path = join(this.folder, `${++this.#files}.csv`);
      await linkOrCopy(file.path, path);
      files.push({ ...file, path });
    }
    return { ...window, files };
  }

  async drop(window: Window): Promise<void> {
    for (const { path } of window.files) await rm(path, { force: true });
  }

  async release(): Promise<void> {
    await this.#own.remove();
  }
}

/** Opens an empty private folder. Throws a Failure that names the spool directory. */
export async function openWindowStore(spoolDir: string, clock: Clock): Promise<WindowStore> {
  return new WindowStore(await RunFolder.open(spoolDir, clock, 'arrow'));
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    if (!['EXDEV', 'EPERM', 'ENOTSUP', 'EMLINK'].includes(codeOf(error) ?? '')) throw error;
    await copyFile(from, to);
  }
}
