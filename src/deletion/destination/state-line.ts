import type { StateStats } from '../../airbyte/messages.ts';
import { withMember } from '../input/json-member.ts';

/** The STATE message that returns a state: its text unchanged, plus the counts of its rows. */
export const stateLine = (state: string, stats: Required<StateStats>): string =>
  `{"type":"STATE","state":${withMember(state, 'destinationStats', JSON.stringify(stats))}}`;
