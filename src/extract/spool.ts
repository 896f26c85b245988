// The files of a run on disk, into which exports are written.

import { randomUUID } from 'node:crypto';
import { open, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PRIVATE_FILE_MODE } from '../fs/permissions.ts';
import type { RunFolder } from '../fs/run-folder.ts';
import type { BodyOutput, CheckedBody } from '../service/export/checked-body.ts';
import type { DownloadResult } from '../service/export/download.ts';
import type { CheckedFile } from './checked-day.ts';

/** A body that was checked and written into a file, or the reason why there is none. */
export type SpooledDownload = DownloadResult<SpoolOutput>;

/** A file in the spool, while it is written. */
interface SpoolOutput extends Required<BodyOutput> {
  readonly path: string;
}

/** Opens a new file in the folder of the run. */
export async function openSpoolOutput(folder: RunFolder): Promise<SpoolOutput> {
  const path = join(folder.path, `${randomUUID()}.csv`);
  const file = await folder.withDiskErrors(open(path, 'wx', PRIVATE_FILE_MODE));
  return {
    path,
    write: (bytes) => folder.withDiskErrors(writeFile(file, bytes)),
    // A network disk may tell only now that it is full.
    close: () => folder.withDiskErrors(file.close()),
    async discard() {
      await file.close().catch(() => {});
      await removeFiles([{ path }]);
    },
  };
}

/** The file into which a body was written. */
export function checkedFileOf({ scan, bytes, sha256, output: { path } }: CheckedBody<SpoolOutput>): CheckedFile {
  return { ...scan, path, bytes, sha256 };
}

/** Removes files that nobody needs any more. Their folder is removed with the run in any case. */
export async function removeFiles(files: readonly Pick<CheckedFile, 'path'>[]): Promise<void> {
  for (const { path } of files) await unlink(path).catch(() => {});
}
