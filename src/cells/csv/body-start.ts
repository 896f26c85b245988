import { isJsonSpace, LESS_THAN, OPEN_BRACE, OPEN_BRACKET, standsAt } from '../../base/ascii.ts';

/** Up to this length (bytes) white space, or a header that is not whole, is read anew at each chunk. */
export const MAX_SEARCHED_BYTES = 1024 * 1024;
/** What may follow the [ of a JSON list. Anything else makes it the start of a name: a customer may call it so. */
const JSON_LIST_STARTS: ReadonlySet<number | undefined> = new Set([...Buffer.from('"{[]'), undefined]);
/** A byte order mark. */
const BOM: Uint8Array = Uint8Array.of(0xef, 0xbb, 0xbf);

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
  /** Undefined if the body may be CSV. */
  readonly otherFormat: OtherFormat | undefined;
}

/**
 * What the first bytes show; undefined while some are missing. A header whose first name begins with { or < is taken for
 * JSON or HTML. `isFinished`: the body has no more bytes.
 */
export function readBodyStart(bytes: Uint8Array, isFinished: boolean): BodyStart | undefined {
  if (bytes.length < BOM.length && !isFinished && bytes[0] === BOM[0]) return undefined;
  const textStart = standsAt(bytes, 0, BOM) ? BOM.length : 0;
  const contentStart = skipSpace(bytes, textStart);
  const isBracket = bytes[contentStart] === OPEN_BRACKET;
  const decidingIndex = isBracket ? skipSpace(bytes, contentStart + 1) : contentStart;
  if (decidingIndex === bytes.length && !isFinished && decidingIndex <= MAX_SEARCHED_BYTES) return undefined;
  const isName = isBracket && !JSON_LIST_STARTS.has(bytes[decidingIndex]);
  return { textStart, otherFormat: isName ? undefined : OTHER_FORMATS.get(bytes[contentStart]) };
}

function skipSpace(bytes: Uint8Array, start: number): number {
  let i = start;
  while (i < bytes.length && isJsonSpace(bytes[i])) i++;
  return i;
}
