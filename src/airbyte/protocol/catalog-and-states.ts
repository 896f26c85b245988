import { configError } from '../../base/errors.ts';
import { isObject, type JsonObject } from '../../base/json.ts';
import type { StreamDescriptor } from './messages.ts';

/** One stream as the user configured it. */
export interface ConfiguredStream {
  readonly descriptor: StreamDescriptor;
  /** The JSON schemas of its properties, by name. */
  readonly properties: ReadonlyMap<string, unknown>;
  readonly syncMode: 'full_refresh' | 'incremental';
  readonly destinationSyncMode: string;
  /** Properties that are its key; empty if no key is configured. Fields inside a property are left out. */
  readonly primaryKey: readonly string[];
  /** Number of the refresh that a row belongs to. Rows of numbers below the minimum are to be removed. */
  readonly generationId: number | undefined;
  readonly minimumGenerationId: number | undefined;
  /** The same for all attempts of one job. */
  readonly syncId: number | undefined;
}

/** Parses a configured catalog: explicit nulls count as absent, unknown keys are ignored. */
export function parseConfiguredCatalog(value: unknown): readonly ConfiguredStream[] {
  if (!isObject(value) || !Array.isArray(value.streams)) throw catalogError('it has no list "streams"');
  return value.streams.map(parseStream);
}

/** A stream as a message names it; undefined without a name. Null, absent and empty namespaces are equal. */
export function descriptorOf(name: unknown, namespace: unknown): StreamDescriptor | undefined {
  if (typeof name !== 'string' || name === '') return undefined;
  return typeof namespace === 'string' && namespace !== '' ? { name, namespace } : { name };
}

/** One text for a name and its namespace. */
export const streamKey = ({ name, namespace }: StreamDescriptor): string => JSON.stringify([namespace, name]);

function parseStream(value: unknown, index: number): ConfiguredStream {
  if (!isObject(value) || !isObject(value.stream)) throw catalogError(`stream ${index + 1} has no object "stream"`);
  const { name, namespace, json_schema: schema } = value.stream;
  const descriptor = descriptorOf(name, namespace);
  if (descriptor === undefined) throw catalogError(`stream ${index + 1} has no name`);
  return {
    descriptor,
    properties: new Map(isObject(schema) && isObject(schema.properties) ? Object.entries(schema.properties) : []),
    syncMode: value.sync_mode === 'incremental' ? 'incremental' : 'full_refresh',
    destinationSyncMode: typeof value.destination_sync_mode === 'string' ? value.destination_sync_mode : 'append',
    primaryKey: Array.isArray(value.primary_key) ? value.primary_key.flatMap(keyProperty) : [],
    generationId: numberOrUndefined(value.generation_id),
    minimumGenerationId: numberOrUndefined(value.minimum_generation_id),
    syncId: numberOrUndefined(value.sync_id),
  };
}

/** The property that a path of a key names: `["id"]`, or `id` as some platforms write it. */
function keyProperty(path: unknown): string[] {
  const names: readonly unknown[] = Array.isArray(path) ? path : [path];
  return names.length === 1 && typeof names[0] === 'string' ? [names[0]] : [];
}

const numberOrUndefined = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

const catalogError = (why: string) => configError(`The configured catalog is not usable: ${why}.`);

/** The states that earlier runs saved, by `streamKey`. A stream without a state is not in it. */
export type SavedStates = ReadonlyMap<string, JsonObject>;

/** Parses the content of a state file: absent, empty, one STATE message of a stream, or a list of them. */
export function parseSavedStates(value: unknown): SavedStates {
  const states = new Map<string, JsonObject>();
  const items: readonly unknown[] = [value ?? []].flat();
  for (const [i, item] of items.entries()) {
    const message = isObject(item) && isObject(item.state) ? item.state : item;
    if (!isObject(message)) throw stateError(i, 'it is not an object');
    if (Object.keys(message).length === 0) continue;
    if (!isObject(message.stream)) throw stateError(i, 'it is not the state of a stream (type STREAM)');
    const { stream_descriptor: stream, stream_state: state } = message.stream;
    const descriptor = isObject(stream) ? descriptorOf(stream.name, stream.namespace) : undefined;
    if (descriptor === undefined) throw stateError(i, 'its stream has no name');
    if (state === undefined || state === null) continue;
    // A state that is not understood must not count as none: an appended table would then have every row twice.
    if (!isObject(state)) throw stateError(i, `the state of its stream ${descriptor.name} is not an object`);
    states.set(streamKey(descriptor), state);
  }
  return states;
}

const stateError = (index: number, why: string) =>
  configError(`The saved state is not usable: item ${index + 1}: ${why}. Reset the connection's state to start anew.`);
