import { configError } from '../../base/errors.ts';
import { isObject, type JsonObject } from '../../base/json.ts';
import type { DestinationSyncMode, JsonSchema, StreamDescriptor, SyncMode } from './messages.ts';

/** One stream as the user configured it. Modes are text: a mode nobody knows must be named, not lost. */
export interface ConfiguredStream {
  readonly descriptor: StreamDescriptor;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly jsonSchema: JsonSchema;
  readonly syncMode: SyncMode | (string & {});
  readonly destinationSyncMode: DestinationSyncMode | (string & {});
  /** Paths of the key's fields; empty if no key is configured. */
  readonly primaryKey: readonly (readonly string[])[];
  readonly generationId: number | undefined;
  readonly minimumGenerationId: number | undefined;
  readonly syncId: number | undefined;
}

export interface ConfiguredCatalog {
  readonly streams: readonly ConfiguredStream[];
}

/** Parses a configured catalog: explicit nulls count as absent, unknown keys are ignored. */
export function parseConfiguredCatalog(value: unknown): ConfiguredCatalog {
  if (!isObject(value) || !Array.isArray(value.streams)) throw unusableError('it has no list "streams"');
  const streams = value.streams.map((one: unknown, i) => parseStream(one, i));
  const seen = new Set<string>();
  for (const stream of streams) {
    const key = streamKey(stream.descriptor);
    if (seen.has(key)) throw unusableError(`the stream ${JSON.stringify(stream.name)} occurs twice`);
    seen.add(key);
  }
  return { streams };
}

/** One text for a name and its namespace; null, absent and empty namespaces are equal. */
export const streamKey = (stream: StreamDescriptor): string => JSON.stringify([stream.namespace || null, stream.name]);

function parseStream(value: unknown, index: number): ConfiguredStream {
  if (!isObject(value) || !isObject(value.stream)) throw unusableError(`stream ${index + 1} has no object "stream"`);
  const name = textIn(value.stream.name);
  if (name === undefined || name === '') throw unusableError(`stream ${index + 1} has no name`);
  const namespace = textIn(value.stream.namespace) || undefined;
  return {
    descriptor: namespace === undefined ? { name } : { name, namespace },
    name,
    namespace,
    jsonSchema: isObject(value.stream.json_schema) ? value.stream.json_schema : {},
    syncMode: textIn(value.sync_mode) ?? 'full_refresh',
    destinationSyncMode: textIn(value.destination_sync_mode) ?? 'append',
    primaryKey: Array.isArray(value.primary_key) ? value.primary_key.map(texts) : [],
    generationId: numberOf(value.generation_id),
    minimumGenerationId: numberOf(value.minimum_generation_id),
    syncId: numberOf(value.sync_id),
  };
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : typeof value === 'string' ? [value] : [];

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

const unusableError = (why: string) => configError(`The configured catalog is not usable: ${why}.`);

/** The states that earlier runs saved, in whichever of the protocol's forms. */
export interface StateInput {
  /** States by `streamKey(descriptor)`. A stream that was saved without a state is not in it. */
  readonly streams: ReadonlyMap<string, JsonObject>;
  /** The state of a LEGACY message, or a bare object that is none of the other forms. */
  readonly legacy: JsonObject | undefined;
}

/** A legacy object is the state of every stream, or a map of states by name. */
export const savedState = (input: StateInput, stream: StreamDescriptor): JsonObject | undefined =>
  input.streams.get(streamKey(stream)) ?? legacyOf(input.legacy, stream.name);

function legacyOf(legacy: JsonObject | undefined, name: string): JsonObject | undefined {
  if (legacy === undefined || !Object.values(legacy).every(isObject)) return legacy;
  const own = Object.hasOwn(legacy, name) ? legacy[name] : undefined;
  return isObject(own) ? own : undefined;
}

/** Parses the content of a state file: absent, `[]`, a list of states, one state, or a legacy object. */
export function parseStateInput(value: unknown): StateInput {
  const streams = new Map<string, JsonObject>();
  let legacy: JsonObject | undefined;
  const items: readonly unknown[] = value === undefined || value === null ? [] : [value].flat();
  for (const [i, one] of items.entries()) {
    const state = unwrapped(one);
    if (!isObject(state)) throw unusableStateError(i, 'it is not an object');
    const { type, stream, global, data } = state;
    if (isObject(stream)) addStream(streams, stream, i);
    else if (isObject(global)) {
      const all: readonly unknown[] = Array.isArray(global.stream_states) ? global.stream_states : [];
      for (const own of all.filter(isObject)) addStream(streams, own, i);
    } else if (isObject(data)) legacy = notEmpty(data);
    else if (type === 'STREAM' || type === 'GLOBAL') throw unusableStateError(i, `a ${type} without content`);
    else if (type !== 'LEGACY') legacy = notEmpty(state);
  }
  return { streams, legacy };
}

function addStream(streams: Map<string, JsonObject>, value: JsonObject, index: number): void {
  const { stream_descriptor: at, stream_state: state } = value;
  const name = isObject(at) ? textIn(at.name) : undefined;
  if (name === undefined || !isObject(at)) throw unusableStateError(index, 'its stream has no name');
  // A state that is not understood must not count as none: an appended table would then have every row twice.
  if (state !== undefined && state !== null && !isObject(state))
    throw unusableStateError(index, `the state of its stream ${name} is not an object`);
  if (isObject(state)) streams.set(streamKey({ name, namespace: textIn(at.namespace) ?? null }), state);
}

/** The state inside an envelope with which it was saved. */
const unwrapped = (value: unknown): unknown =>
  isObject(value) && value.type === 'STATE' && isObject(value.state) ? value.state : value;

const notEmpty = (value: JsonObject): JsonObject | undefined => (Object.keys(value).length > 0 ? value : undefined);

const unusableStateError = (index: number, why: string) =>
  configError(`The saved state is not usable: item ${index + 1}: ${why}. Reset the connection's state to start anew.`);

export const textIn = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);
