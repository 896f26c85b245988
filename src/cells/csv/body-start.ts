import { COMMA, isJsonSpace, LESS_THAN, LF, OPEN_BRACE, OPEN_BRACKET, standsAt } from '../../base/ascii.ts';
import { UNIFIED_ID } from '../header.ts';

/** Up to this length (bytes) white space or an incomplete header is searched at each chunk. Past it both are refused. */
export const MAX_SEARCHED_BYTES = 1024 * 1024;
/** A byte order mark. */
const BOM: Uint8Array = Uint8Array.of(0xef, 0xbb, 0xbf);
/** A column that every header has. */
const REQUIRED_NAME = Buffer.from(UNIFIED_ID);

/** A format other than CSV; `found` names it in messages. */
interface OtherFormat {
  /** Undefined for binary data. */
  readonly kind?: 'json' | 'html';
  readonly found: string;
}

export const JSON_OBJECT: OtherFormat = { kind: 'json', found: 'text that starts with {, as a JSON message does' };

const OTHER_FORMATS: ReadonlyMap<number, OtherFormat> = new Map([
  [OPEN_BRACE, JSON_OBJECT],
  [OPEN_BRACKET, { kind: 'json', found: 'text that starts with [, as a JSON message does' }],
  [LESS_THAN, { kind: 'html', found: 'text that starts with <, as an HTML page does' }],
  [0x00, { found: 'binary data' }],
  [0x1f, { found: 'binary data, perhaps still compressed' }],
]);

interface BodyStart {
  /** The index at which the text begins, behind a BOM. */
  readonly textStart: number;
  /** Absent if the body may be CSV. */
  readonly otherFormat?: OtherFormat;
}

/** What the first bytes show; undefined while some are missing. `isFinished`: the body has no more bytes. */
export function bodyStart(bytes: Uint8Array, isFinished: boolean): BodyStart | undefined {
  if (bytes.length < BOM.length && !isFinished && bytes[0] === BOM[0]) return undefined;
  const textStart = standsAt(bytes, 0, BOM) ? BOM.length : 0;
  let contentStart = textStart;
  while (contentStart < bytes.length && isJsonSpace(bytes[contentStart])) contentStart++;
  if (contentStart === bytes.length) return isFinished || contentStart > MAX_SEARCHED_BYTES ? { textStart } : undefined;
  const otherFormat = OTHER_FORMATS.get(bytes[contentStart]);
  if (otherFormat === undefined) return { textStart };
  const isHeader = holdsHeader(bytes, contentStart, isFinished);
  if (isHeader === undefined) return undefined;
  return isHeader ? { textStart } : { textStart, otherFormat };
}

/**
 * True if a first line that begins like another format is a header: a customer's own key may begin with a bracket.
 * Undefined while the line is incomplete.
 */
function holdsHeader(bytes: Uint8Array, start: number, isFinished: boolean): boolean | undefined {
  for (let i = start; i < bytes.length; i++) {
    if (bytes[i] === LF) return false;
    if (bytes[i] === COMMA && standsAt(bytes, i + 1, REQUIRED_NAME)) return true;
  }
  return isFinished || bytes.length - start > MAX_SEARCHED_BYTES ? false : undefined;
}
