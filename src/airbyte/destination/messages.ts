import { isUtf8 } from 'node:buffer';
import { internalError } from '../../base/errors.ts';
import { isObject, type JsonObject, jsonOf } from '../../base/json.ts';
import { linesOf } from '../../base/lines.ts';
import { textIn } from '../protocol/input.ts';
import type { StreamDescriptor } from '../protocol/messages.ts';
import { membersOf } from './json-member.ts';

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
  onUnknown: (line: number) => void = () => {},
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
  if (!isUtf8(bytes)) throw noMessage(line, 'is not valid UTF-8');
  const text = bytes.toString();
  if (text.trim() === '') return undefined;
  const value = jsonOf(text);
  if (value === undefined) throw noMessage(line, 'is not JSON');
  if (!isObject(value) || typeof value.type !== 'string')
    throw noMessage(line, 'is no message of the Airbyte protocol');
  if (value.type === 'RECORD') return recordMessage(value.record, line);
  if (value.type === 'STATE') return stateMessage(value.state, text, line);
  if (!SKIPPED.has(value.type)) onUnknown(line);
  return undefined;
}

function recordMessage(record: unknown, line: number): InputMessage {
  if (!isObject(record) || !isObject(record.data)) throw noMessage(line, 'is a RECORD without data');
  const name = textIn(record.stream);
  if (name === undefined) throw noMessage(line, 'is a RECORD without a stream');
  return { kind: 'record', line, stream: { name, namespace: textIn(record.namespace) || null }, data: record.data };
}

function stateMessage(state: unknown, text: string, line: number): InputMessage {
  const span = membersOf(text).get('state');
  if (!isObject(state) || span === undefined) throw noMessage(line, 'is a STATE without content');
  const raw = text.slice(span.from, span.to);
  const at = isObject(state.stream) ? state.stream.stream_descriptor : undefined;
  if (!isObject(at)) return { kind: 'state', line, stream: undefined, text: raw };
  const name = textIn(at.name);
  if (name === undefined) throw noMessage(line, 'is a STATE of a stream without a name');
  return { kind: 'state', line, stream: { name, namespace: textIn(at.namespace) || null }, text: raw };
}

const noMessage = (line: number, why: string) =>
  internalError(`Line ${line} of the input ${why}; the run was given up before any deletion.`, {
    where: { row: line },
  });
