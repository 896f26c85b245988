// The results of sync, plan, status and verify, which the functions of the library give, too. docs/commands.md says
// what the members mean. Nothing heavy is imported here: the declarations of the package need this file and few others.

import { EXIT, type ExitCode } from '../base/errors.ts';

/** The result of a sync that has done nothing. Schema: schemas/summary.json. */
export const EMPTY_SUMMARY = {
  v: 1,
  rows: 0,
  rows_new: 0,
  /** Days that were read and are stored. */
  days: 0,
  /** How many of these came as they are stored, and were not written again. */
  days_unchanged: 0,
  /** Days of which rows were added, replaced, re-typed or removed: perhaps also some that were not read. */
  days_changed: [] as readonly string[],
  exports: 0,
  /** Bytes of CSV received. */
  bytes: 0,
  seconds: 0,
  from_date: null as string | null,
  next_from_date: null as string | null,
  to_date_inclusive: null as boolean | null,
  columns_added: [] as readonly string[],
  columns_widened: [] as readonly { readonly name: string; readonly from: string; readonly to: string }[],
  rescued_cells: 0,
  suppressed_rows: 0,
  /** User profiles that were stored; null if none were. */
  profiles: null as number | null,
  gaps: [] as readonly string[],
  open_days: [] as readonly string[],
  implausible_days: [] as readonly string[],
  exit: EXIT.done as ExitCode,
  /** The sentence of a failure. */
  error: null as string | null,
};

/** What a sync has done; every key is always there. */
export type Summary = Readonly<typeof EMPTY_SUMMARY>;

/** What a sync would do. */
export interface PlanResult {
  readonly v: 1;
  readonly from_date: string | null;
  readonly to_date: string | null;
  /** Each day, with the span of its export. */
  readonly days: readonly { readonly from_date: string; readonly to_date: string; readonly read_again: boolean }[];
  readonly exports_least: number;
  readonly exports_most: number;
  readonly exports_startable_now: number;
  readonly earliest_end: string;
  readonly to_date_inclusive: boolean | null;
  readonly gaps: readonly string[];
  readonly cursor: string;
}

/** What a place holds. */
export interface Status {
  readonly v: 1;
  readonly target: string;
  readonly place: string;
  readonly cursor: string | null;
  readonly first_day: string | null;
  readonly last_day: string | null;
  readonly days: number;
  readonly changed: readonly { readonly day: string; readonly changed_at: string }[];
  readonly rows: number;
  /** Rows of `user_profiles`, and the instant as of which they are; null if there is no such table. */
  readonly profiles: { readonly rows: number; readonly as_of: string } | null;
  readonly timezone: string | null;
  readonly to_date_inclusive: boolean | null;
  readonly open_days: readonly string[];
  readonly gaps: readonly string[];
  readonly pruned_days: readonly string[];
  readonly other_filters_days: readonly string[];
  readonly implausible_days: readonly string[];
  readonly days_until_loss: number | null;
  readonly last_run: {
    readonly began: string;
    readonly ended: string;
    readonly exit: number;
    readonly cause: string | null;
    readonly version: string;
    readonly rows: number;
    readonly days: number;
    readonly exports: number;
    readonly bytes: number;
  } | null;
}

/** How a place differs from its receipts; without differences it agrees with them. */
export interface Verification {
  readonly v: 1;
  readonly target: string;
  readonly place: string;
  readonly differences: readonly { readonly check: string; readonly message: string }[];
  readonly warnings: readonly string[];
}
