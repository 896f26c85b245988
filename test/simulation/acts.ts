import type { Json } from './drawn.ts';
import type { Kill } from './machine/process.ts';

/*
 * What is done in a simulation: by one process, and in one step of its testCase.
 */

/** The most that one list may delete. */
export const CAP = 3;

/** How a process may come to its end before its work does. */
export interface End extends Kill {
  /** `stop`: by SIGTERM; `kill`: by SIGKILL, so that it does nothing any more; `power`: with all others, by a cut of it. */
  readonly how: 'stop' | 'kill' | 'power';
}

/** One process of the machine. */
export interface Act {
  /** `other`: somebody else's load of the same, into another place; `stream`: an Arrow stream of it. */
  readonly what: 'sync' | 'other' | 'stream' | 'refresh' | 'part' | 'compact' | 'forget' | 'purge' | 'write';
  /** What a part loads: `--from` and `--to`, as days after the first of the simulation. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** People whom a list names, by number. */
  readonly users: readonly number[];
  /** How many of them may be deleted. */
  readonly cap: number;
  readonly end: End | undefined;
  /** Bytes that its disk still takes. */
  readonly disk: number | undefined;
}

/** Some hours pass, then one or two processes run at once. */
export interface Step {
  readonly hours: number;
  /** It begins so long before the next noon in UTC, when a day is over in every zone; undefined: whenever it is. */
  readonly beforeNoonMs: number | undefined;
  /** How far the machine's clock is ahead of the service's, and by how much that changes on the way. */
  readonly skewHours: number;
  readonly jumpHours: number;
  readonly faults: readonly Json[];
  /** The tokens are reissued before; the configuration learns of it only after. */
  readonly isReissued: boolean;
  readonly acts: readonly Act[];
}

/** Nothing out of the ordinary. */
export const actOf = (what: Act['what'], more: Partial<Act> = {}): Act => ({
  what,
  users: [1],
  cap: CAP,
  from: undefined,
  to: undefined,
  end: undefined,
  disk: undefined,
  ...more,
});

export const stepOf = (acts: readonly Act[], more: Partial<Step> = {}): Step => ({
  hours: 0,
  beforeNoonMs: undefined,
  skewHours: 0,
  jumpHours: 0,
  faults: [],
  isReissued: false,
  acts,
  ...more,
});

export const isDeletion = ({ what }: Act): boolean => what === 'forget' || what === 'purge' || what === 'write';
