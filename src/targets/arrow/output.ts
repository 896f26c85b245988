import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { abortable } from '../../base/abort.ts';
import { DAY_MS } from '../../base/clock.ts';
import { removeTemporaries, replaceFile, temporaryPathOf } from '../../fs/atomic-file.ts';
import { replaceablePath } from '../../fs/named-file.ts';
import { PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import type { LoadOptions } from '../contract.ts';

/**
 * Gives `write` the Node stream to write to. A file appears under its name once it is complete. A device or a pipe is
 * written directly. Throws the system's error.
 */
export async function withOutput(
  pathOrStream: string | Writable,
  { clock, signal }: LoadOptions,
  write: (output: Writable) => Promise<void>,
): Promise<void> {
  if (typeof pathOrStream !== 'string') return write(pathOrStream);
  const file = replaceablePath(pathOrStream, 'arrow');
  if (file === undefined) {
    const output = createWriteStream(pathOrStream);
    // A pipe opens once somebody reads it.
    return writeAndClose(output, abortable(once(output, 'open'), signal), write);
  }
  // Killed runs left these. A younger one may be that of a run that waits for its first day.
  await removeTemporaries(file, clock.now() - DAY_MS).catch(() => undefined);
  const temporaryPath = temporaryPathOf(file);
  try {
    const output = createWriteStream(temporaryPath, { flags: 'wx', mode: PRIVATE_FILE_MODE });
    await writeAndClose(output, once(output, 'open'), write);
    await replaceFile(file, { finishedPath: temporaryPath });
  } finally {
    await rm(temporaryPath, { force: true });
  }
}

async function writeAndClose(
  output: Writable,
  opened: Promise<unknown>,
  write: (output: Writable) => Promise<void>,
): Promise<void> {
  const closed = once(output, 'close');
  closed.catch(() => undefined);
  try {
    await opened;
    await write(output);
    // The reader of a pipe has left.
    if (output.destroyed) return;
    output.end();
    await closed;
  } finally {
    output.destroy();
  }
}
