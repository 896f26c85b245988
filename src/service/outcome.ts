// This folder: the operations of the service, each one request and its answer, and the quota of exports.

/** A row of an outcome table: what an answer means, by the properties that it is classified by. First match wins. */
export interface OutcomeRow<Facts, Kind> {
  readonly when: (facts: Facts) => boolean;
  readonly kind: Kind;
  /** Stable, for logs and tests; absent: what the body itself says. */
  readonly code?: string;
  readonly message: (facts: Facts) => string;
}

/** One status, or the first and the last of a range. */
export const status =
  (first: number, last = first) =>
  (facts: { readonly status: number }): boolean =>
    facts.status >= first && facts.status <= last;

/** The first row that matches; the last one of a table matches everything. */
export const firstMatch = <Facts, Kind>(rows: readonly OutcomeRow<Facts, Kind>[], facts: Facts) =>
  rows.find(({ when }) => when(facts)) ?? rows[rows.length - 1];
