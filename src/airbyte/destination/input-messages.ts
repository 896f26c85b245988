import { isUtf8 } from 'node:buffer';
import { internalError } from '../../base/errors.ts';
import { isObject, type JsonObject, jsonOf } from '../../base/json.ts';
import { linesOf } from '../../base/lines.ts';
import { textIn } from '../protocol/catalog-and-states.ts';
import type { StreamDescriptor } from '../protocol/messages.ts';

/** The messages that a destination reads from a platform; others are skipped. */
export type InputMessage =
  | { readonly kind: 'record'; readonly line: number; readonly stream: StreamDescriptor; readonly data: JsonObject }
  | {
      readonly kind: 'state';
      readonly line: number;
      /** The stream of the state; undefined for a state of all streams. */
      readonly stream: StreamDescriptor | undefined;
      /** The text of the state object, unchanged. */
      readonly text: string;
    };

/** Types of messages that the protocol knows and a destination ignores. */
const SKIPPED = new Set(['LOG', 'SPEC', 'CONNECTION_STATUS', 'CATALOG', 'TRACE', 'CONTROL', 'DESTINATION_CATALOG']);

/**
 * The records and states of a platform's stdin, as many at a time as arrive together. Throws for a line that is no
 * message, naming its number but not its content. `onUnknown` is called for each message of an unknown type.
 */
export async function* readMessages(
  input: AsyncIterable<Uint8Array | string>,
  onUnknown: (line: number) => void,
): AsyncGenerator<InputMessage[]> {
  let line = 0;
  for await (const lines of linesOf(input)) {
    const messages: InputMessage[] = [];
    for (const bytes of lines) {
      line++;
      const message = parse(bytes, line, onUnknown);
      if (message) messages.push(message);
    }
    yield messages;
  }
}

function parse(bytes: Buffer, line: number, onUnknown: (line: number) => void): InputMessage | undefined {
  if (!isUtf8(bytes)) throw unusableLine(line, 'is not valid UTF-8');
  const text = bytes.toString();
  if (text.trim() === '') return undefined;
  const value = jsonOf(text);
  if (value === undefined) throw unusableLine(line, 'is not JSON');
  if (!isObject(value) || typeof value.type !== 'string')
    throw unusableLine(line, 'is no message of the Airbyte protocol');
  if (value.type === 'RECORD') return recordMessage(value.record, line);
  if (value.type === 'STATE') return stateMessage(value.state, text, line);
  if (!SKIPPED.has(value.type)) onUnknown(line);
  return undefined;
}

function recordMessage(record: unknown, line: number): InputMessage {
  if (!isObject(record) || !isObject(record.data)) throw unusableLine(line, 'is a RECORD without data');
  const name = textIn(record.stream);
  if (name === undefined) throw unusableLine(line, 'is a RECORD without a stream');
  return { kind: 'record', line, stream: { name, namespace: textIn(record.namespace) || null }, data: record.data };
}

function stateMessage(state: unknown, text: string, line: number): InputMessage {
  const raw = memberText(text, 'state');
  if (!isObject(state) || raw === undefined || Object.keys(state).length === 0) {
    throw unusableLine(line, 'is a STATE without content');
  }
  const descriptor = isObject(state.stream) ? state.stream.stream_descriptor : undefined;
  if (!isObject(descriptor)) return { kind: 'state', line, stream: undefined, text: raw };
  const name = textIn(descriptor.name);
  if (name === undefined) throw unusableLine(line, 'is a STATE of a stream without a name');
  return { kind: 'state', line, stream: { name, namespace: textIn(descriptor.namespace) || null }, text: raw };
}

const unusableLine = (line: number, why: string) =>
  internalError(`Line ${line} of the input ${why}; the run was given up before any deletion.`, {
    where: { row: line },
  });

/**
 * The text of a member of an object in its text, which is known to be valid JSON. It is not parsed, so that numbers of
 * any size and any spelling can be passed on unchanged.
 */
function memberText(text: string, name: string): string | undefined {
  let depth = 0;
  let key: string | undefined;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && from === 0) key = text.slice(at, end);
      at = end - 1;
    } else if (char === ':' && depth === 1) from = at + 1;
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']' || char === ',') {
      if (depth === 1) {
        if (from > 0 && key !== undefined && JSON.parse(key) === name) return text.slice(from, at).trim();
        from = 0;
      }
      if (char !== ',') depth--;
    }
  }
  return undefined;
}

/** The index behind the closing quote of the string that begins at `at`. */
function endOfString(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === '\\') end++;
    else if (text[end] === '"') return end + 1;
  }
  return text.length;
}
