import { isUtf8 } from 'node:buffer';
import { configError, systemError } from '../../base/errors.ts';
import { isObject, type JsonObject, jsonOf } from '../../base/json.ts';
import { linesOf } from '../../base/lines.ts';
import { type ConfiguredStream, descriptorOf, streamKey } from '../protocol/catalog-and-states.ts';
import type { VerbContext } from '../protocol/connector.ts';

/** The configured streams by `streamKey`. */
type Streams = ReadonlyMap<string, ConfiguredStream>;

/** The messages that a destination reads from a platform; others are skipped. */
export type InputMessage =
  | { readonly kind: 'record'; readonly line: number; readonly stream: ConfiguredStream; readonly data: JsonObject }
  | {
      readonly kind: 'state';
      /** The stream of the state; undefined for a state of all streams. */
      readonly stream: ConfiguredStream | undefined;
      /** The text of the state object, unchanged. */
      readonly text: string;
    };

/** Types of messages that the protocol knows and a destination ignores. */
const SKIPPED = new Set(['LOG', 'SPEC', 'CONNECTION_STATUS', 'CATALOG', 'TRACE', 'CONTROL', 'DESTINATION_CATALOG']);

/**
 * The records and states of a platform's stdin, as many at a time as arrive together. Throws for a line that is no
 * message, naming its number but not its content, and for a stream that is not configured.
 */
export async function* readMessages(
  { input, logger, signal }: VerbContext,
  streams: Streams,
): AsyncGenerator<InputMessage[]> {
  let line = 0;
  for await (const lines of linesOf(input)) {
    signal.throwIfAborted();
    const messages: InputMessage[] = [];
    for (const bytes of lines) {
      line++;
      if (!isUtf8(bytes)) throw unusableLine(line, 'is not valid UTF-8');
      const text = bytes.toString();
      if (text.trim() === '') continue;
      const value = jsonOf(text);
      if (value === undefined) throw unusableLine(line, 'is not JSON');
      if (!isObject(value) || typeof value.type !== 'string')
        throw unusableLine(line, 'is no message of the Airbyte protocol');
      if (value.type === 'RECORD') messages.push(recordOf(value.record, line, streams));
      else if (value.type === 'STATE') messages.push(stateOf(value.state, text, line, streams));
      else if (!SKIPPED.has(value.type)) {
        logger.warn('input.unknown', `Line ${line} of the input is a message of an unknown type. It is skipped.`);
      }
    }
    yield messages;
  }
}

function recordOf(record: unknown, line: number, streams: Streams): InputMessage {
  if (!isObject(record) || !isObject(record.data)) throw unusableLine(line, 'is a RECORD without data');
  const stream = streamOf(record.stream, record.namespace, line, streams);
  return { kind: 'record', line, stream, data: record.data };
}

function stateOf(state: unknown, text: string, line: number, streams: Streams): InputMessage {
  const unchangedText = memberText(text, 'state');
  if (!isObject(state) || unchangedText === undefined || Object.keys(state).length === 0) {
    throw unusableLine(line, 'is a STATE without content');
  }
  const descriptor = isObject(state.stream) ? state.stream.stream_descriptor : undefined;
  if (!isObject(descriptor)) return { kind: 'state', stream: undefined, text: unchangedText };
  const stream = streamOf(descriptor.name, descriptor.namespace, line, streams);
  return { kind: 'state', stream, text: unchangedText };
}

function streamOf(name: unknown, namespace: unknown, line: number, streams: Streams): ConfiguredStream {
  const descriptor = descriptorOf(name, namespace);
  if (descriptor === undefined) throw unusableLine(line, 'names no stream');
  const stream = streams.get(streamKey(descriptor));
  if (stream !== undefined) return stream;
  throw configError(
    `Nothing was deleted: line ${line} of the input is of the stream ${JSON.stringify(descriptor.name)}, which the connection does not have.`,
    { where: { row: line } },
  );
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
  for (const { 0: token, index } of text.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]/g)) {
    if (token === '{' || token === '[') depth++;
    else if (token === ':' && depth === 1) valueStart = index + 1;
    else if (token.startsWith('"') && depth === 1 && valueStart === undefined) key = token;
    else if (token === '}' || token === ']' || token === ',') {
      if (depth === 1 && valueStart !== undefined && key !== undefined && JSON.parse(key) === name) {
        return text.slice(valueStart, index).trim();
      }
      if (depth === 1) valueStart = undefined;
      if (token !== ',') depth--;
    }
  }
  return undefined;
}
