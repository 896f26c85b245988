import { isUtf8 } from 'node:buffer';
import { configError, systemError } from '../../base/errors.ts';
import { isObject, type JsonObject, tryParseJson } from '../../base/json.ts';
import { readLines } from '../../base/lines.ts';
import { type ConfiguredStream, descriptorOf, streamKey } from '../protocol/catalog-and-states.ts';
import type { VerbContext } from '../protocol/connector.ts';

export interface InputState {
  readonly type: 'STATE';
  /** The `streamKey` of its stream; undefined for a state of all streams. */
  readonly key: string | undefined;
  /** The text of the message, unchanged: up to the last member of its state, and from there on. */
  readonly head: string;
  readonly tail: string;
}

const ESCAPE_QUOTE_OR_BRACKET = /\\.|["{}[\]]/g;

/**
 * Gives the records and states of a platform's stdin; other messages mean nothing here. Throws for a record of a stream
 * that is not configured, and for a line that is no message. It names the number of the line, not its content.
 */
export async function* inputMessages({ input, catalog, signal }: VerbContext) {
  const streams = new Map(catalog.map((stream) => [streamKey(stream.descriptor), stream]));
  let line = 0;
  for await (const lines of readLines(input)) {
    signal.throwIfAborted();
    for (const bytes of lines) {
      line++;
      if (!isUtf8(bytes)) throw lineError(line, 'is not valid UTF-8');
      const text = bytes.toString();
      if (text.trim() === '') continue;
      const message = tryParseJson(text);
      if (message === undefined) throw lineError(line, 'is not JSON');
      if (!isObject(message) || typeof message.type !== 'string')
        throw lineError(line, 'is no message of the Airbyte protocol');
      if (message.type === 'RECORD') yield recordIn(message, line, streams);
      else if (message.type === 'STATE') yield stateIn(message, text, line);
    }
  }
}

function recordIn({ record }: JsonObject, line: number, streams: ReadonlyMap<string, ConfiguredStream>) {
  if (!isObject(record) || !isObject(record.data)) throw lineError(line, 'is a RECORD without data');
  const stream = streams.get(keyOf(record.stream, record.namespace, line));
  if (stream !== undefined) return { type: 'RECORD', stream, data: record.data, line } as const;
  const message = `Nothing was deleted: line ${line} of the input is of the stream ${JSON.stringify(record.stream)}, which the connection does not have.`;
  throw configError(message, { where: { row: line } });
}

function stateIn({ state }: JsonObject, text: string, line: number): InputState {
  const end = endOfState(text);
  if (!isObject(state) || end === undefined || Object.keys(state).length === 0)
    throw lineError(line, 'is a STATE without content');
  const { stream_descriptor: stream } = isObject(state.stream) ? state.stream : {};
  const key = isObject(stream) ? keyOf(stream.name, stream.namespace, line) : undefined;
  return { type: 'STATE', key, head: text.slice(0, end), tail: text.slice(end) };
}

/**
 * The index of the brace that ends the object `state` of a message, the last one if there are two. To parse and print
 * it would change large numbers.
 */
function endOfState(message: string): number | undefined {
  let end: number | undefined;
  let depth = 0;
  let isInState = false;
  let stringStart: number | undefined;
  let lastString = '';
  for (const { 0: token, index } of message.matchAll(ESCAPE_QUOTE_OR_BRACKET)) {
    if (token === '"') {
      if (stringStart !== undefined) lastString = message.slice(stringStart, index);
      stringStart = stringStart === undefined ? index + 1 : undefined;
    } else if (stringStart === undefined) {
      const isOpening = token === '{' || token === '[';
      if (isOpening && depth === 1) isInState = lastString === 'state';
      depth += isOpening ? 1 : -1;
      if (depth === 1 && isInState) end = index;
    }
  }
  return end;
}

function keyOf(name: unknown, namespace: unknown, line: number): string {
  const descriptor = descriptorOf(name, namespace);
  if (descriptor === undefined) throw lineError(line, 'names no stream');
  return streamKey(descriptor);
}

const lineError = (line: number, why: string) =>
  systemError(`Line ${line} of the input ${why}; the run was given up before any deletion.`, {
    where: { row: line },
  });
