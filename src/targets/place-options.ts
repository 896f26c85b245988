import type { Runtime } from '../base/runtime.ts';

/**
 * Options of all that is done with a place. A place is shown in messages and stored, so that a secret is never part of
 * it: a target that needs one reads it from `env`, by the name that other programs of its format give it, and keeps it
 * out of its messages, where nothing masks it.
 */
export interface PlaceOptions extends Pick<Runtime, 'env' | 'clock' | 'logger'> {
  /** Maximum wait for the lock of a place (ms); then a transient failure (exit 3). */
  readonly lockWaitMs: number;
  /** Memory limit as DuckDB writes it (`2GB`); undefined for half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  /** Folder for what has to wait on the disk, in a folder of each run, which its end removes. */
  readonly spoolDir: string;
  /** Once it is aborted, whatever is done ends within seconds, with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}
