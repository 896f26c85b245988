import { isObject, parseJsonObject, parseJsonOfKind } from '../../base/json.ts';
import { withStart } from '../../base/lines.ts';
import { bodyStart } from '../../cells/csv/body-start.ts';
import type { ByteStream } from '../../http/body.ts';
import type { BodyContent } from './outcomes.ts';

/** The content that the first bytes show; undefined while there are too few of them. `isFinished`: no more will come. */
export function contentOf(
  bytes: Uint8Array,
  { isFinished }: { readonly isFinished: boolean },
): BodyContent | undefined {
  if (isFinished) {
    const text = Buffer.from(bytes).toString().trim();
    if (text === '') return 'empty';
    if (parseJsonOfKind(Array.isArray, text)?.length === 0) return 'empty_list';
  }
  const start = bodyStart(bytes, isFinished);
  return start && (start.otherFormat?.kind ?? 'maybe_csv');
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

/** The origin of a `Location`; the rest of it is never shown. */
export function originOf(location: string | undefined, base: string): string | undefined {
  if (location === undefined || !URL.canParse(location, base)) return undefined;
  const { origin, protocol } = new URL(location, base);
  return origin === 'null' ? protocol : origin;
}

/** Leading white space, and a first line that may be JSON, are read no further than this many bytes. */
const MAX_START_BYTES = 64 * 1024;

/** Reads a body until its first bytes show what it is; `stream` is the whole body. Throws what the body throws. */
export async function peekBody(body: ByteStream) {
  let start: Uint8Array = new Uint8Array(0);
  let content: BodyContent | undefined;
  while (content === undefined && start.length < MAX_START_BYTES) {
    const next = await body.next();
    if (next.done !== true) start = start.length === 0 ? next.value : Buffer.concat([start, next.value]);
    content = contentOf(start, { isFinished: next.done === true });
  }
  return { content: content ?? 'maybe_csv', stream: withStart(start, body) };
}
