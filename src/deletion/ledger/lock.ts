import { join } from 'node:path';
import type { Clock } from '../../base/clock.ts';
import { transientFailure } from '../../base/errors.ts';
import { LockFile } from '../../fs/lock.ts';
import type { LedgerOutput } from './output.ts';

/** One run at a time writes to a ledger's folder. */
export class LedgerLock {
  readonly #lock: LockFile;
  readonly #folder: string;

  private constructor(lock: LockFile, folder: string) {
    this.#lock = lock;
    this.#folder = folder;
  }

  /** Takes the lock or throws a transient failure that names the holder. A dead holder's lock is taken over. */
  static async take(folder: string, clock: Clock): Promise<LedgerLock> {
    const what = `the ledger in ${folder}`;
    return new LedgerLock(await LockFile.take(join(folder, 'ledger.lock'), { what, clock, waitMs: 0 }), folder);
  }

  /** An output that refuses to write once another run has taken the lock over (while this process was suspended). */
  guarded(output: LedgerOutput): LedgerOutput {
    return {
      write: async (lines) => {
        if (!this.#lock.isHeld()) {
          throw transientFailure(
            `Another run has taken over the ledger in ${this.#folder}: this one was silent for long.`,
          );
        }
        await output.write(lines);
      },
      close: () => output.close(),
    };
  }

  release(): void {
    this.#lock.release();
  }
}
