import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { resolve as absolute } from 'node:path';
import { environmentOfChild } from '../base/env.ts';
import { transientError } from '../base/errors.ts';

/** Copies one path to another, which must not exist; prints the code of the system's error. */
const COPY = `
try {
  require('node:fs').copyFileSync(process.argv[1], process.argv[2], ${constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE});
} catch (error) {
  process.stdout.write(String(error.code));
  throw error;
}`;

/**
 * Copies a file on which this process holds a lock. A file system that can share blocks shares them. Another process
 * reads the file: under POSIX a process that closes any descriptor of a file loses all its locks on it, and DuckDB
 * would go on to write a file that another process has locked. Throws the system's error.
 */
export function copyLockedFile(from: string, to: string, signal: AbortSignal | undefined): Promise<void> {
  const paths = [absolute(from), absolute(to)];
  return new Promise((resolve, reject) => {
    execFile(process.execPath, ['-e', COPY, ...paths], { signal, env: environmentOfChild() }, (error, code) => {
      if (error === null) resolve();
      else if (code !== '') reject(Object.assign(new Error(`copy ${paths.join(' to ')}: ${code}`), { code }));
      else if (error.signal == null) reject(error);
      else
        reject(
          transientError(`The process that copied ${from} was ended by ${error.signal}: run again.`, { cause: error }),
        );
    });
  });
}
