import type { Json } from './common.ts';
import type { Kill } from './machine/process.ts';

/*
 * The actions of a simulation: what one process does, and what happens in one step of a test case.
 */

/** The most that one list may delete. */
export const CAP = 3;

/** How a process is ended before its work is done. */
export interface End extends Kill {
  /** `stop`: by SIGTERM; `kill`: by SIGKILL; `power`: a power cut ends it and all others. */
  readonly how: 'stop' | 'kill' | 'power';
}

/** One process of the machine. */
export interface Action {
  /** `other`: a load of the same days by another user into another place; `stream`: an Arrow stream of them. */
  readonly what: 'sync' | 'other' | 'stream' | 'refresh' | 'part' | 'compact' | 'forget' | 'purge' | 'write';
  /** The days that a part loads: `--from` and `--to`, as days after the first of the simulation. */
  readonly from: number | undefined;
  readonly to: number | undefined;
  /** People whom a list names, by number. */
  readonly users: readonly number[];
  /** How many of them may be deleted. */
  readonly cap: number;
  readonly end: End | undefined;
  /** Number of bytes that fit on its disk; undefined for any number. */
  readonly disk: number | undefined;
}

/** Some hours pass, then one or two processes run at once. */
export interface Step {
  readonly hours: number;
  /** The step begins this many ms before the next noon in UTC, when a day is over in every zone; undefined: at any time. */
  readonly beforeNoonMs: number | undefined;
  /** How far the machine's clock is ahead of the service's, and by how much that changes on the way. */
  readonly skewHours: number;
  readonly jumpHours: number;
  readonly faults: readonly Json[];
  /** The tokens are reissued before; the configuration learns of it only after. */
  readonly isReissued: boolean;
  readonly actions: readonly Action[];
}

export const actionOf = (what: Action['what'], more: Partial<Action> = {}): Action => ({
  what,
  users: [1],
  cap: CAP,
  from: undefined,
  to: undefined,
  end: undefined,
  disk: undefined,
  ...more,
});

export const stepOf = (actions: readonly Action[], more: Partial<Step> = {}): Step => ({
  hours: 0,
  beforeNoonMs: undefined,
  skewHours: 0,
  jumpHours: 0,
  faults: [],
  isReissued: false,
  actions,
  ...more,
});

export const isDeletion = ({ what }: Action): boolean => what === 'forget' || what === 'purge' || what === 'write';
