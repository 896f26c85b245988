import { open, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { OWNER_FILE_MODE } from '../fs/permissions.ts';
import { RunFolder } from '../fs/run-folder.ts';
import type { CheckedBody, CheckedOutput } from '../service/export/checked-body.ts';
import type { DownloadResult } from '../service/export/download.ts';
import type { ExportRefusal } from '../service/export/protocol.ts';

/** A file in the spool, while it is written. */
interface SpoolOutput extends Required<CheckedOutput> {
  readonly path: string;
}

/** A checked body that lies in a file. */
export type CheckedFile = CheckedBody<SpoolOutput>;

/** What the exports of one request came to: a checked file, or the reason why there is none. */
export type ExportResult = DownloadResult<SpoolOutput>;

/** The downloads of one run, as files in a temporary folder of its own. */
export class Spool {
  readonly #folder: RunFolder;
  #files = 0;

  private constructor(folder: RunFolder) {
    this.#folder = folder;
  }

  /** Makes the folder under `spoolDir`. Throws a UserError that names `spoolDir`. */
  static async open(spoolDir: string, clock: Clock): Promise<Spool> {
    return new Spool(await RunFolder.open(spoolDir, clock, 'spool'));
  }

  /** Begins a file. */
  async newFile(): Promise<SpoolOutput> {
    const folder = this.#folder;
    const path = join(folder.path, `${++this.#files}.csv`);
    const file = await folder.onDisk(open(path, 'wx', OWNER_FILE_MODE));
    return {
      path,
      write: (bytes) => folder.onDisk(writeFile(file, bytes)),
      // A network disk may tell only now that it is full.
      close: () => folder.onDisk(file.close()),
      async discard() {
        await file.close().catch(() => {});
        await removeFiles([{ path }]);
      },
    };
  }

  /** Removes the folder and all files in it. */
  remove(): Promise<void> {
    return this.#folder.remove();
  }
}

/** Removes files that nobody needs any more. Their folder is removed with the run in any case. */
export async function removeFiles(files: readonly { readonly path: string }[]): Promise<void> {
  for (const { path } of files) await unlink(path).catch(() => {});
}

/** Removes the files of results that have one. */
export const discardFiles = (...results: readonly (CheckedFile | ExportRefusal)[]): Promise<void> =>
  removeFiles(results.flatMap((result) => (result.kind === 'checked' ? result.output : [])));
