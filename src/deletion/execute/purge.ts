import type { Ledger } from '../ledger/ledger.ts';

/** What a rewrite removed. Whole numbers; bytes are those of the files before and after. */
export interface PurgeCounts {
  readonly people: number;
  readonly rows: number;
  readonly files_rewritten: number;
  readonly bytes_before: number;
  readonly bytes_after: number;
}

/** A place with loaded rows that can forget people so that no byte of them remains; the sinks have one each. */
export interface Purger {
  /** For the ledger and for people: `duckdb FILE` or `parquet DIR`; nobody's data. */
  readonly target: string;
  /** Removes every row of these `df_unified_id`s and rewrites what held them. Done twice it removes nothing more. */
  purge(unifiedIds: AsyncIterable<string>, signal: AbortSignal): Promise<PurgeCounts>;
}

/** Purges one place after the other; each has its line in the ledger, on disk, before the next begins. */
export async function purgeAll(
  purgers: readonly Purger[],
  unifiedIds: () => AsyncIterable<string>,
  ledger: Pick<Ledger, 'purge'>,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, PurgeCounts>> {
  const out = new Map<string, PurgeCounts>();
  for (const purger of purgers) {
    signal.throwIfAborted();
    const counts = await purger.purge(unifiedIds(), signal);
    await ledger.purge(purger.target, { ...counts });
    out.set(purger.target, counts);
  }
  return out;
}
