/** A row of an outcome table: the meaning of the answers whose traits match `when`. The last row matches everything. */
export interface OutcomeRow<Traits, Kind> {
  readonly when: (traits: Traits) => boolean;
  readonly kind: Kind;
  /** Stable code for logs and tests. Without one it is what the caller makes of the body. */
  readonly code?: string;
  /** What happened and what to do, without a capital and a period. `sentenceOf` makes a sentence of it. */
  readonly clause: (traits: Traits) => string;
}

export const hasStatus =
  (...statuses: number[]) =>
  ({ status }: { readonly status: number }): boolean =>
    statuses.includes(status);

/** Matches a timeout, a conflict, a lock and the like, which are temporary. */
export const hasTemporaryStatus = hasStatus(408, 409, 423, 424, 425, 499);

/** Matches answers with a status from the first to the last. */
export const hasStatusBetween =
  (first: number, last: number) =>
  ({ status }: { readonly status: number }): boolean =>
    status >= first && status <= last;

/** What the first row that matches says of an answer with these traits. */
export function matchOutcome<Traits, Kind>(rows: readonly OutcomeRow<Traits, Kind>[], traits: Traits) {
  const { kind, code, clause } = rows.find(({ when }) => when(traits)) ?? rows[rows.length - 1];
  return { kind, code, clause: clause(traits) };
}
