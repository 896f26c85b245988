import { COMMA, LF } from '../../base/ascii.ts';

/** A byte order mark. */
const BOM: Uint8Array = Uint8Array.of(0xef, 0xbb, 0xbf);
/** Maximum number of bytes of white space before the first other byte. */
const MAX_SPACE = 64 * 1024;

/** A format other than CSV; `found` names it in messages. */
export interface OtherFormat {
  readonly kind: 'json' | 'html' | 'binary' | 'utf16';
  readonly found: string;
}

/** Other formats by their first byte. */
const OTHER_FORMATS: ReadonlyMap<number, OtherFormat> = new Map([
  [0x7b, { kind: 'json', found: 'text that starts with {, as a JSON message does' }],
  [0x5b, { kind: 'json', found: 'text that starts with [, as a JSON message does' }],
  [0x3c, { kind: 'html', found: 'text that starts with <, as an HTML page does' }],
  [0x00, { kind: 'binary', found: 'binary data' }],
  [0x1f, { kind: 'binary', found: 'binary data, perhaps still compressed' }],
  [0xfe, { kind: 'utf16', found: 'UTF-16 text' }],
  [0xff, { kind: 'utf16', found: 'UTF-16 text' }],
]);

/** True if [start, end) of `bytes` begins with `text`. */
const startsWith = (bytes: Uint8Array, start: number, end: number, text: Uint8Array): boolean =>
  end - start >= text.length && text.every((byte, i) => bytes[start + i] === byte);

/**
 * The index at which the text begins, behind a BOM; the format if it is no CSV; undefined while too few bytes are
 * there.
 */
export function bodyStart(
  bytes: Uint8Array,
  start: number,
  end: number,
  last: boolean,
): number | OtherFormat | undefined {
  if (end - start < BOM.length && !last && (start === end || bytes[start] === BOM[0])) return undefined;
  const begin = startsWith(bytes, start, end, BOM) ? start + BOM.length : start;
  let i = begin;
  while (i < end && i - begin < MAX_SPACE && (bytes[i] === 32 || bytes[i] === 10 || bytes[i] === 13 || bytes[i] === 9))
    i++;
  if (i === end) return last ? begin : undefined;
  const other = OTHER_FORMATS.get(bytes[i]);
  if (other === undefined) return begin;
  const isHeader = holdsHeader(bytes, i, end, last);
  if (isHeader === undefined) return undefined;
  return isHeader ? begin : other;
}

/** Every header has this column. */
const UNIFIED_ID = Uint8Array.from('df_unified_id', (c) => c.charCodeAt(0));
/** Maximum length of a header that is looked through for a line end (bytes). */
const LONGEST_HEADER = 1024 * 1024;

/**
 * True if the first line is a header although it begins like another format: a customer's own key may begin with a
 * bracket. Undefined while the line is incomplete.
 */
function holdsHeader(bytes: Uint8Array, start: number, end: number, last: boolean): boolean | undefined {
  for (let i = start; i < end; i++) {
    if (bytes[i] === LF) return false;
    if (bytes[i] === COMMA && startsWith(bytes, i + 1, end, UNIFIED_ID)) return true;
  }
  return last || end - start > LONGEST_HEADER ? false : undefined;
}
