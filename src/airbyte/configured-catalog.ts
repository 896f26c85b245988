import { configFailure } from '../base/errors.ts';
import { isObject, type JsonObject, present, textOf } from './json.ts';
import type { DestinationSyncMode, JsonSchema, StreamDescriptor, SyncMode } from './messages.ts';

/** One stream as the user configured it. Modes are text: a mode nobody knows must be named, not lost. */
export interface ConfiguredStream {
  readonly descriptor: StreamDescriptor;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly jsonSchema: JsonSchema;
  readonly syncMode: SyncMode | (string & {});
  readonly destinationSyncMode: DestinationSyncMode | (string & {});
  /** Paths; empty when none is configured. */
  readonly cursorField: readonly string[];
  readonly primaryKey: readonly (readonly string[])[];
  readonly destinationObjectName: string | undefined;
  readonly generationId: number | undefined;
  readonly minimumGenerationId: number | undefined;
  readonly syncId: number | undefined;
  /** The configured stream as it came, unknown keys and all. */
  readonly raw: JsonObject;
}

export interface ConfiguredCatalog {
  readonly streams: readonly ConfiguredStream[];
}

/** Parses a configured catalog: explicit nulls count as absent, unknown keys are kept in `raw`. */
export function parseConfiguredCatalog(value: unknown): ConfiguredCatalog {
  if (!isObject(value) || !Array.isArray(value.streams)) throw unusable('it has no list "streams"');
  const streams = value.streams.map((one: unknown, i) => parseStream(one, i));
  const seen = new Set<string>();
  for (const stream of streams) {
    const key = keyOf(stream.descriptor);
    if (seen.has(key)) throw unusable(`the stream ${JSON.stringify(stream.name)} occurs twice`);
    seen.add(key);
  }
  return { streams };
}

/** One text for a name and its namespace; null, absent and empty namespaces are the same. */
export const keyOf = (stream: StreamDescriptor): string => JSON.stringify([stream.namespace || null, stream.name]);

function parseStream(value: unknown, index: number): ConfiguredStream {
  if (!isObject(value) || !isObject(value.stream)) throw unusable(`stream ${index + 1} has no object "stream"`);
  const name = textOf(value.stream.name);
  if (name === undefined || name === '') throw unusable(`stream ${index + 1} has no name`);
  const namespace = textOf(value.stream.namespace) || undefined;
  return {
    descriptor: namespace === undefined ? { name } : { name, namespace },
    name,
    namespace,
    jsonSchema: isObject(value.stream.json_schema) ? value.stream.json_schema : {},
    syncMode: textOf(value.sync_mode) ?? 'full_refresh',
    destinationSyncMode: textOf(value.destination_sync_mode) ?? 'append',
    cursorField: texts(value.cursor_field),
    primaryKey: Array.isArray(value.primary_key) ? value.primary_key.map(texts) : [],
    destinationObjectName: textOf(value.destination_object_name) || undefined,
    generationId: numberOf(value.generation_id),
    minimumGenerationId: numberOf(value.minimum_generation_id),
    syncId: numberOf(value.sync_id),
    raw: value,
  };
}

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : typeof value === 'string' ? [value] : [];

const numberOf = (value: unknown): number | undefined => present(typeof value === 'number' ? value : undefined);

const unusable = (why: string) => configFailure(`The configured catalog is not usable: ${why}.`);
