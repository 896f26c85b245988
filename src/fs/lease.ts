import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { codeOf } from '../base/errors.ts';
import { createHolderFile, isAbandoned, readHolderFile, removeIfThere, startHeartbeat } from './holder-file.ts';

const NAME = /^(r[0-9a-f]{16})\.lease$/;

/** Shows that a run is alive: files with its name in a shared folder must not be touched while its lease is held. */
export class Lease {
  /** A name that no other run has. */
  readonly run: string;
  readonly #path: string;
  readonly #stopHeartbeat: () => void;

  private constructor(run: string, path: string, token: string, clock: Clock) {
    this.run = run;
    this.#path = path;
    this.#stopHeartbeat = startHeartbeat(path, token, clock);
  }

  /** Throws the system's error, `EEXIST` too where the file went away under its hands. */
  static take(folder: string, clock: Clock): Lease {
    const run = `r${randomBytes(8).toString('hex')}`;
    const path = pathOf(folder, run);
    const token = createHolderFile(path);
    if (token === undefined) throw Object.assign(new Error(`${path} was taken away`), { code: 'EEXIST' });
    return new Lease(run, path, token, clock);
  }

  release(): void {
    this.#stopHeartbeat();
    try {
      removeIfThere(this.#path);
    } catch {
      // Without a heartbeat it is nobody's soon.
    }
  }
}

/** The run that a file is the lease of. */
export const leaseOf = (name: string): string | undefined => NAME.exec(name)?.[1];

const pathOf = (folder: string, run: string): string => join(folder, `${run}.lease`);

/** True while the run that wrote a file lives. Throws the system's error. */
export function isLeased(folder: string, run: string): boolean {
  const path = pathOf(folder, run);
  try {
    const holder = readHolderFile(path);
    return holder !== undefined && !isAbandoned(holder, path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return false;
    throw error;
  }
}
