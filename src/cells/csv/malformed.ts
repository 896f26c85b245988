import { UserError } from '../../base/errors.ts';
import { capitalized } from '../../base/text.ts';

/** What the sentence says of the row: `Row 3 … has too few cells`. */
const PREDICATES = {
  short_row: 'has too few cells',
  long_row: 'has too many cells',
  quote_in_cell: 'has a quote inside a cell that does not start with one',
  after_quote: 'has text after a closing quote',
  cut_in_quote: 'ends inside a quoted cell',
  cut_in_row: 'ends before its last cell',
  blank_line: 'is blank',
  empty_body: 'is missing, as is everything else',
  no_header: 'has no column names',
  missing_columns: 'lacks columns that every export has',
  header_again: 'is the header once more',
  row_too_long: 'is longer than a row may be',
  too_many_columns: 'has more columns than an export may have',
  not_csv: 'is not CSV',
} as const;

export type MalformedReason = keyof typeof PREDICATES;

/** The body is no whole CSV export. Another download may be one; nothing of this body is used. */
export class MalformedCsv extends UserError {
  override readonly name = 'MalformedCsv';
  readonly reason: MalformedReason;
  /** What is wrong and where: `row 3 (byte 40) is blank: expected 2 cells, found a blank line`. */
  readonly clause: string;

  /**
   * `row`: the number of the row, not of the line; the header is row 1. `byte`: the offset in the body, in which U+FFFD
   * counts for bytes that are no UTF-8.
   */
  constructor(reason: MalformedReason, row: number, byte: number, expected: string, found: string) {
    const clause = `row ${row} (byte ${byte}) ${PREDICATES[reason]}: expected ${expected}, found ${found}`;
    const message = `${capitalized(clause)}; nothing of the export was used, try again later.`;
    super('transient', message, { where: { row, byte }, detail: `malformed csv: ${reason}` });
    this.reason = reason;
    this.clause = clause;
  }
}

/** The body is whole, but no CSV as it is documented. Another download would be the same: its kind is `config`. */
export class UnusableCsv extends UserError {
  override readonly name = 'UnusableCsv';
  /** What is wrong with the body: `text in another encoding, wanted UTF-8`. */
  readonly mismatch: string;

  /** Both are parts of the sentence: "The export has …, wanted …". */
  constructor(expected: string, found: string) {
    const mismatch = `${found}, wanted ${expected}`;
    super('config', `The export has ${mismatch}: nothing of it was used, and it would be the same again.`, {
      detail: `unusable csv: ${found}`,
    });
    this.mismatch = mismatch;
  }
}

export const otherEncodingError = (): UnusableCsv => new UnusableCsv('UTF-8', 'text in another encoding');
