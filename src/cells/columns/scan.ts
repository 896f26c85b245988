import type { CellForms } from '../types/forms.ts';
import type { ColumnGroup } from '../types/known-columns.ts';
import type { ColumnType } from '../types/type.ts';

/** The first cell of a column that had a new class. */
export interface FirstSeen {
  /** The bits that it added. */
  readonly forms: CellForms;
  /** Number of its row; the header is row 1. */
  readonly row: number;
  /** Its shape: digits as 9, letters as a, at most 32 characters. Nothing else of a cell may be logged. */
  readonly shape: string;
}

/** The result of a scan for one column, from all of its cells. */
export interface ColumnScan {
  /** The name in the export. */
  readonly source: string;
  readonly group: ColumnGroup;
  /** True if the values were replaced by hashes: then the column is a string, whatever its name. */
  readonly hashed?: true;
  /** Bits of `src/cells/types/forms.ts`. With STRING others may be missing; a declared string column has STRING alone. */
  readonly forms: CellForms;
  /** The declared type, else that of the forms; absent while every cell is absent. */
  readonly type?: ColumnType;
  /** Number of cells that are not empty (the text `null` counts). */
  readonly filled: number;
  /** Number of cells that do not fit the declared type of a system or standard column; 0 for other columns. */
  readonly misfits: number;
  /**
   * First and last time of a datetime column, in the zone's wall clock. ISO texts without a zone:
   * `2026-01-02T03:04:00.000`, six digits if there are micros. The search for the end day uses them.
   */
  readonly first?: string;
  readonly last?: string;
  /** The first cells of each new class, in the order of rows; for the log line that says what widened a column. */
  readonly seen?: readonly FirstSeen[];
}

/** Maximum length of a shape (characters). */
const LONGEST = 32;
/** Bytes that are looked at: 32 characters take at most four bytes each. */
const MAX_SHAPED_BYTES = LONGEST * 4;
const decoder = new TextDecoder();

/** The shape of a cell, for logs: digits as 9, letters as a, control characters as `·`, others as they are. */
export function shapeOf(bytes: Uint8Array, start: number, end: number): string {
  const text = decoder.decode(bytes.subarray(start, Math.min(end, start + MAX_SHAPED_BYTES)));
  return [...text].slice(0, LONGEST).map(shapeOfCharacter).join('');
}

function shapeOfCharacter(character: string): string {
  if (/\p{N}/u.test(character)) return '9';
  if (/[\p{L}\p{M}]/u.test(character)) return 'a';
  return /\p{C}/u.test(character) ? '·' : character;
}
