import type { ExportState, RunFacts, StoredReceipts } from './day.ts';

/**
 * The state of a place after a commit. `receipts` are all of the place after the commit, by day. Pure; called under the
 * lock of the place.
 */
export function stateAfter(
  _before: ExportState | undefined,
  _receipts: StoredReceipts,
  _facts: RunFacts,
): ExportState {
  throw new Error('not yet written');
}
