import { withStart } from '../../base/byte-streams.ts';
import { isObject, parseJsonObject, parseJsonOfKind } from '../../base/json.ts';
import { readBodyStart } from '../../cells/csv/body-start.ts';
import { type ByteStream, MAX_ANSWER_BYTES } from '../../http/body.ts';
import type { BodyContent } from './outcomes.ts';

/** The content of a body by its first bytes, of one that is short by all of them. */
export function contentOf(bytes: Uint8Array): BodyContent {
  const text = Buffer.from(bytes).toString().trim();
  if (text === '') return 'empty';
  if (parseJsonOfKind(Array.isArray, text)?.length === 0) return 'empty_list';
  return readBodyStart(bytes, true)?.otherFormat?.kind ?? 'maybe_csv';
}

const SNAKE_CASE = /^[a-z]+(_[a-z]+)*$/;
/** A body that is a reason alone; of one word it could be any text. */
const REASON_ALONE = /^\uFEFF?\s*"?([a-z]+(?:_[a-z]+)+)"?\s*$/i;
const LONGEST_REASON = 60;

/** The reason of a failure. It is printed: only plain words are accepted, and no text that contains the token. */
export function reasonIn(text: string, token: string): string | undefined {
  const { message, code, error } = parseJsonObject(text);
  const inner = isObject(error) ? [error.code, error.message] : [error];
  for (const value of [message, code, ...inner, REASON_ALONE.exec(text)?.[1]]) {
    if (typeof value !== 'string' || value.length > LONGEST_REASON || value.includes(token)) continue;
    const words = value.trim().toLowerCase();
    if (SNAKE_CASE.test(words)) return words;
  }
  return undefined;
}

/**
 * Reads a body until its first bytes show whether it may be CSV. After too much white space it may: the scan decides.
 * `stream` is the whole body. Throws what that throws.
 */
export async function peekBody(body: ByteStream) {
  let start: Uint8Array = new Uint8Array(0);
  for (;;) {
    const next = await body.next();
    if (next.done === true) return { mayBeCsv: contentOf(start) === 'maybe_csv', stream: withStart(start, body) };
    start = start.length === 0 ? next.value : Buffer.concat([start, next.value]);
    const parsedStart = readBodyStart(start.subarray(0, MAX_ANSWER_BYTES), false);
    if (parsedStart !== undefined || start.length >= MAX_ANSWER_BYTES)
      return { mayBeCsv: parsedStart?.otherFormat?.kind === undefined, stream: withStart(start, body) };
  }
}
