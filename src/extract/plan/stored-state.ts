import type { QuestionHashes } from '../question.ts';
import { type KnownState, parseState, StateFailure } from '../state.ts';
import { todayEast } from './calendar.ts';

/**
 * The stored state, checked against the question of this run (S6). `startsOver`: other filters, or a cursor in the
 * future, under a full refresh, so what the target has says nothing about this question. Throws a StateFailure that
 * names the rule which forbids to go on.
 */
export function checkState(
  stored: unknown,
  hashes: QuestionHashes,
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
    throw new StateFailure(
      'filters',
      'The target was filled with other filters (events, properties or their conditions differ): put them back, use ' +
        'another target, or read everything again with --full-refresh.',
    );
  }
  const today = todayEast(run.now);
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
