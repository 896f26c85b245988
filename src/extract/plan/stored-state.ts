import type { RequestHashes } from '../export-request.ts';
import { type KnownState, parseState, StateFailure } from '../state.ts';
import { latestToday } from './calendar.ts';
import type { PlanWarning } from './gaps.ts';

/**
 * The stored state, checked against the question of this run (S6). `startsOver`: other filters, or a cursor in the
 * future, under a full refresh, so that the target's contents do not count. Throws a StateFailure when the state must not be
 * used.
 */
export function checkState(
  stored: unknown,
  hashes: RequestHashes,
  run: { readonly now: number; readonly fullRefresh?: boolean | undefined },
): { readonly state: KnownState | undefined; readonly startsOver: boolean } {
  const state = parseState(stored);
  if (state === undefined) return { state, startsOver: false };
  if (state.service !== undefined && state.service !== hashes.service) {
    throw new StateFailure(
      'service',
      'The target holds the data of another service (base_url or service_id differ): use another target for this one.',
    );
  }
  const startsOver = state.question !== undefined && state.question !== hashes.question;
  if (startsOver && run.fullRefresh !== true) {
    if (otherColumns(state, hashes)) throw new StateFailure('columns', OTHER_COLUMNS);
    throw new StateFailure(
      'filters',
      'The target was filled with other filters (events, properties or their conditions differ): put them back, use ' +
        'another target, or read everything again with --full-refresh.',
    );
  }
  const today = latestToday(run.now);
  const future = state.from_date > today;
  if (future && run.fullRefresh === true) return { state, startsOver: true };
  if (future && !startsOver) {
    throw new StateFailure(
      'future',
      `The stored cursor ${state.from_date} lies in the future (today is at most ${today}): check the clock of this ` +
        'machine, or read everything again with --full-refresh.',
    );
  }
  return { state, startsOver };
}

/** The rows of a target are in another form than this run would give them (S47). */
const otherColumns = (state: KnownState | undefined, hashes: RequestHashes): boolean =>
  state?.question !== undefined && state.columns !== hashes.columns;

const OTHER_COLUMNS =
  'The target was filled with other columns dropped or hashed, or under another key (columns_drop, columns_hash or hash_key ' +
  'differ): put them back, use another target, or read everything again with --full-refresh. Rows of days that the ' +
  'service no longer exports keep the old form.';

/** Warns that a full refresh with other column lists or another key does not reach days that are no longer exported. */
export const formWarnings = (state: KnownState | undefined, hashes: RequestHashes): PlanWarning[] =>
  otherColumns(state, hashes) ? [OLD_FORM] : [];

const OLD_FORM: PlanWarning = {
  event: 'columns.changed',
  message:
    'Other columns are dropped or hashed than before, or under another key: rows of days that the service no longer exports keep the old form.',
};
