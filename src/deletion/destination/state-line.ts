import type { StateStats } from '../../airbyte/messages.ts';
import { withMember } from '../input/json-member.ts';

/** The line that gives a state back: the state as it was spelled, with the counts of what became of its rows. */
export const stateLine = (state: string, stats: Required<StateStats>): string =>
  `{"type":"STATE","state":${withMember(state, 'destinationStats', JSON.stringify(stats))}}`;
