import { UserError } from '../../base/errors.ts';
import { capitalized } from '../../base/text.ts';

/** The body is no whole CSV export. Another download may be one; nothing of this body is used. */
export class MalformedCsv extends UserError {
  override readonly name = 'MalformedCsv';
  /** A code to search for: `short_row`, `cut_in_quote`, `not_csv`. */
  readonly reason: string;
  /** What is wrong and where: `row 3 (byte 40) has a blank line, wanted 2 cells`. */
  readonly clause: string;

  /**
   * `row`: the number of the row, not of the line; the header is row 1. `byte`: the offset in the body, in which U+FFFD
   * counts for bytes that are no UTF-8.
   */
  constructor(reason: string, row: number, byte: number, expected: string, found: string) {
    const clause = `row ${row} (byte ${byte}) has ${found}, wanted ${expected}`;
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
