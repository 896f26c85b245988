import { isUtf8 } from 'node:buffer';
import { systemError } from '../../base/errors.ts';
import { isObject, type JsonObject, jsonOf } from '../../base/json.ts';
import { linesOf } from '../../base/lines.ts';
import { descriptorOf } from '../protocol/catalog-and-states.ts';
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
  if (value.type === 'RECORD') return readRecord(value.record, line);
  if (value.type === 'STATE') return readState(value.state, text, line);
  if (!SKIPPED.has(value.type)) onUnknown(line);
  return undefined;
}

function readRecord(record: unknown, line: number): InputMessage {
  if (!isObject(record) || !isObject(record.data)) throw unusableLine(line, 'is a RECORD without data');
  const stream = descriptorOf(record.stream, record.namespace);
  if (stream === undefined) throw unusableLine(line, 'is a RECORD without a stream');
  return { kind: 'record', line, stream, data: record.data };
}

function readState(state: unknown, text: string, line: number): InputMessage {
  const unchangedText = memberText(text, 'state');
  if (!isObject(state) || unchangedText === undefined || Object.keys(state).length === 0) {
    throw unusableLine(line, 'is a STATE without content');
  }
  const descriptor = isObject(state.stream) ? state.stream.stream_descriptor : undefined;
  if (!isObject(descriptor)) return { kind: 'state', line, stream: undefined, text: unchangedText };
  const stream = descriptorOf(descriptor.name, descriptor.namespace);
  if (stream === undefined) throw unusableLine(line, 'is a STATE of a stream without a name');
  return { kind: 'state', line, stream, text: unchangedText };
}

const unusableLine = (line: number, why: string) =>
  systemError(`Line ${line} of the input ${why}; the run was given up before any deletion.`, {
    where: { row: line },
  });

/**
 * The text of a member of an object in its text, which is known to be valid JSON. It is not parsed, so that numbers of
 * any size and any spelling can be passed on unchanged.
 */
function memberText(text: string, name: string): string | undefined {
  let depth = 0;
  let key: string | undefined;
  /** Undefined before the colon of a member. */
  let valueStart: number | undefined;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && valueStart === undefined) key = text.slice(at, end);
      at = end - 1;
    } else if (char === ':' && depth === 1) valueStart = at + 1;
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']' || char === ',') {
      if (depth === 1) {
        if (valueStart !== undefined && key !== undefined && JSON.parse(key) === name) {
          return text.slice(valueStart, at).trim();
        }
        valueStart = undefined;
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
