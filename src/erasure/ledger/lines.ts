// The lines of the ledger: keys as in schemas/ledger-line.json. Ids are keyed hashes, instants ISO 8601 in UTC.

/** The content of a line, without the fields that all lines have. */
export type LineContent = Readonly<
  | {
      /** The first line of a run. */
      kind: 'begin';
      base_url: string;
      service_id: string;
      requested_by?: string | undefined;
      reason?: string | undefined;
      /** Ids about to be requested. */
      ids: number;
      places: readonly string[];
      /** False if the service is not asked: for a purge alone, and for `person`. */
      requests: boolean;
      /** People on the suppression list before anybody is added; undefined if no place is purged. */
      suppressed?: number | undefined;
    }
  /** A request is about to be sent. */
  | { kind: 'before'; id: string }
  | {
      kind: 'after';
      id: string;
      outcome: Decision | 'retry' | 'wait' | 'stop' | 'undecided';
      code: string;
      status: number | null;
      /** When the deletion was asked for, as the list says. */
      requested_at?: string | undefined;
    }
  /**
   * What a place holds of a person right before its removal. `id`: null for the others on the suppression list.
   * `found`: people of the id were found, who are on the suppression list by then, or rows that name nobody. `request`: the
   * service is asked about the id once the places are purged.
   */
  | { kind: 'purge'; id: string | null; place: string; rows: number; found?: boolean; request?: boolean }
  /**
   * The purge of a place is done; `rows` of all people together. `suppressed`: lines of the suppression list. `stays`:
   * tables and files that others made in the place. `unreached`: something of the place could not be read or removed.
   */
  | { kind: 'purged'; place: string; rows: number; suppressed: number; stays: readonly string[]; unreached: boolean }
  /** Somebody was shown all that places hold about a person, who was looked for in these ways. */
  | { kind: 'access'; id: string; places: readonly string[]; ways: readonly string[]; rows: number }
>;

export type LedgerLine = LineContent & {
  readonly v: 1;
  readonly run: string;
  readonly at: string;
  /** Tells a wrong key from an edited line. */
  readonly key_check: string;
};
export type LineOf<K extends LineContent['kind']> = Extract<LedgerLine, { kind: K }>;
/** Each line has the code (MAC) of the line before it (`prev`), and its own (`mac`), which covers both. */
export type SignedLine = LedgerLine & { readonly prev: string; readonly mac: string };

/** The service whose profiles are deleted: at another one the same id may be another person. */
export interface ServiceAddress {
  readonly baseUrl: string;
  readonly serviceId: string;
}

/** What the service decided of an id. */
export type Decision = 'done' | 'rejected';
