import type { Ledger } from '../ledger/ledger.ts';

/** What a rewrite removed. Whole numbers; bytes are those of the files before and after. */
export interface PurgeCounts {
  readonly people: number;
  readonly rows: number;
  readonly files_rewritten: number;
  readonly bytes_before: number;
  readonly bytes_after: number;
}

/** Removes people from a place with loaded rows so that no byte of their rows remains. */
export interface Purger {
  /** Name for the ledger and for messages, such as `duckdb FILE` or `parquet DIR`; contains no personal data. */
  readonly target: string;
  /** Removes every row of these `df_unified_id`s and rewrites the files that held them. Idempotent. */
  purge(unifiedIds: AsyncIterable<string>, signal: AbortSignal): Promise<PurgeCounts>;
}

/** Purges the places one by one; the ledger line of each is on disk before the next begins. */
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
