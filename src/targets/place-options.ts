import type { Runtime } from '../base/runtime.ts';

/** Options of all that is done with a place. */
export interface PlaceOptions extends Pick<Runtime, 'env' | 'clock' | 'logger'> {
  /** Maximum wait for the lock of a place (ms); then a transient failure (exit 3). */
  readonly lockWaitMs: number;
  /** Memory limit as DuckDB writes it (`2GB`); undefined for half of what the machine or container allows. */
  readonly memoryLimit?: string | undefined;
  /** Folder for temporary files. Each run has a folder in it, and removes that at its end. */
  readonly spoolDir: string;
  /** Once it is aborted, whatever is done ends within seconds, with the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
}
