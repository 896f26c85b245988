import { isUtf8 } from 'node:buffer';
import { readLines } from '../../base/byte-streams.ts';
import { configError, systemError } from '../../base/errors.ts';
import { isObject, type JsonObject, tryParseJson } from '../../base/json.ts';
import { descriptorOf, streamKey } from '../protocol/catalog-and-states.ts';
import type { VerbContext } from '../protocol/connector.ts';

export interface InputState {
  readonly type: 'STATE';
  /** The `streamKey` of its stream; undefined for a state of all streams. */
  readonly key: string | undefined;
  /** The text of the message, unchanged: up to the last member of its state, and from there on. */
  readonly beforeStateEnd: string;
  readonly fromStateEnd: string;
}

/** The name of no member of a state. */
const MARK = 'dfinery_elt_end_of_state';

/**
 * Gives the records and states of a platform's stdin; other messages mean nothing here. Throws for a record of a stream
 * that is not configured, and for a line that is no message. It names the number of the line, not its content.
 */
export async function* inputMessages({ input, catalog, signal }: VerbContext) {
  const streamKeys = new Set(catalog.map(({ descriptor }) => streamKey(descriptor)));
  let lineNumber = 0;
  for await (const lines of readLines(input)) {
    signal.throwIfAborted();
    for (const bytes of lines) {
      lineNumber++;
      if (!isUtf8(bytes)) throw lineError(lineNumber, 'is not valid UTF-8');
      const text = bytes.toString();
      if (text.trim() === '') continue;
      const message = tryParseJson(text);
      if (message === undefined) throw lineError(lineNumber, 'is not JSON');
      if (!isObject(message) || typeof message.type !== 'string')
        throw lineError(lineNumber, 'is no message of the Airbyte protocol');
      if (message.type === 'RECORD') yield recordIn(message, lineNumber, streamKeys);
      else if (message.type === 'STATE') yield stateIn(message, text, lineNumber);
    }
  }
}

function recordIn({ record }: JsonObject, lineNumber: number, streamKeys: ReadonlySet<string>) {
  if (!isObject(record) || !isObject(record.data)) throw lineError(lineNumber, 'is a RECORD without data');
  const key = keyOf(record.stream, record.namespace, lineNumber);
  if (streamKeys.has(key)) return { type: 'RECORD', key, data: record.data } as const;
  const message = `Nothing was deleted: line ${lineNumber} of the input is of the stream ${JSON.stringify(record.stream)}, which the connection does not have.`;
  throw configError(message, { where: { row: lineNumber } });
}

function stateIn({ state }: JsonObject, text: string, lineNumber: number): InputState {
  const end = endOfState(text);
  if (!isObject(state) || end === undefined || Object.keys(state).length === 0)
    throw lineError(lineNumber, 'is a STATE without content');
  const { stream_descriptor: stream } = isObject(state.stream) ? state.stream : {};
  const key = isObject(stream) ? keyOf(stream.name, stream.namespace, lineNumber) : undefined;
  return { type: 'STATE', key, beforeStateEnd: text.slice(0, end), fromStateEnd: text.slice(end) };
}

/**
 * The index of the brace that ends the object `state` of a message: a member that is put before it is one of the state.
 * To parse and print the message would change large numbers. The braces are tried from the last one on.
 */
function endOfState(message: string): number | undefined {
  for (let index = message.lastIndexOf('}'); index > 0; index = message.lastIndexOf('}', index - 1)) {
    const marked = tryParseJson(`${message.slice(0, index)},"${MARK}":0${message.slice(index)}`);
    if (isObject(marked) && isObject(marked.state) && Object.hasOwn(marked.state, MARK)) return index;
  }
  return undefined;
}

function keyOf(name: unknown, namespace: unknown, lineNumber: number): string {
  const descriptor = descriptorOf(name, namespace);
  if (descriptor === undefined) throw lineError(lineNumber, 'names no stream');
  return streamKey(descriptor);
}

const lineError = (lineNumber: number, why: string) =>
  systemError(`Line ${lineNumber} of the input ${why}; the run was given up before any deletion.`, {
    where: { row: lineNumber },
  });
