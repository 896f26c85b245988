// This folder: the operations of the service, each one request and its answer, and the quota of exports.
// `check.ts` tries both operations for `check`. This file has what their tables of answers share.

/** A row of an outcome table: the meaning of the answers for which `when` is true. */
export interface OutcomeRow<Facts, Kind> {
  readonly when: (facts: Facts) => boolean;
  readonly kind: Kind;
  /** Stable code for logs and tests; absent if the body contains the code. */
  readonly code?: string;
  readonly message: (facts: Facts) => string;
}

/** Matches one status, or a range from the first to the last. */
export const status =
  (first: number, last = first) =>
  (facts: { readonly status: number }): boolean =>
    facts.status >= first && facts.status <= last;

/** Matches answers with one of these statuses. */
export const statusIn =
  (...statuses: number[]) =>
  (facts: { readonly status: number }): boolean =>
    statuses.includes(facts.status);

/** The first row that matches applies; the last one of a table matches everything. */
export const firstMatch = <Facts, Row extends OutcomeRow<Facts, unknown>>(rows: readonly Row[], facts: Facts): Row =>
  rows.find(({ when }) => when(facts)) ?? rows[rows.length - 1];
