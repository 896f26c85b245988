import type { QuestionHashes } from '../question.ts';
import { type KnownState, parseState, StateFailure } from '../state.ts';
import { todayEast } from './calendar.ts';

/**
 * The stored state, judged against the question of this run (S6). `anew`: other filters, or a cursor in the
 * future, under a full refresh, so what the target has says nothing about this question. Throws a StateFailure that says which rule forbids to go on.
 */
export function checkState(
  stored: unknown,
  hashes: QuestionHashes,
  run: { readonly now: number; readonly fullRefresh?: boolean | undefined },
): { readonly state: KnownState | undefined; readonly anew: boolean } {
  const state = parseState(stored);
  if (state === undefined) return { state, anew: false };
  if (state.service !== undefined && state.service !== hashes.service) {
    throw new StateFailure(
      'service',
      'The target holds the data of another service (base_url or service_id differ): use another target for this one.',
    );
  }
  const anew = state.question !== undefined && state.question !== hashes.question;
  if (anew && run.fullRefresh !== true) {
    throw new StateFailure(
      'filters',
      'The target was filled with other filters (events, properties or their conditions differ): put them back, use ' +
        'another target, or read everything again with --full-refresh.',
    );
  }
  const today = todayEast(run.now);
  const future = state.from_date > today;
  if (future && run.fullRefresh === true) return { state, anew: true };
  if (future && !anew) {
    throw new StateFailure(
      'future',
      `The stored cursor ${state.from_date} lies in the future (today is at most ${today}): check the clock of this ` +
        'machine, or read everything again with --full-refresh.',
    );
  }
  return { state, anew };
}
