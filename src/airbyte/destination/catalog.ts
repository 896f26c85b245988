import { configError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { type DestinationConfig, parseDestinationConfig } from '../../config/destination.ts';
import { type DiscoverVerb, openConfig } from '../protocol/connector.ts';
import { type ConfiguredCatalog, type ConfiguredStream, streamKey } from '../protocol/input.ts';
import type { StreamDescriptor } from '../protocol/messages.ts';

/** The one object, and its key, that `discover` offers for data activation. */
const PROFILES = 'profiles';
const MATCHING_KEY = 'external_id';

/** The `discover` verb: offers the only operation that there is, for data activation. */
export const discover: DiscoverVerb = async (value, context) => {
  openConfig(parseDestinationConfig(value, context.env), context);
  const operation = {
    object_name: PROFILES,
    sync_mode: 'soft_delete',
    json_schema: {
      $schema: 'http://json-schema.org/draft-07/schema#',
      type: 'object',
      properties: { [MATCHING_KEY]: { type: 'string' } },
      required: [MATCHING_KEY],
      additionalProperties: false,
    },
    matching_keys: [[MATCHING_KEY]],
  } as const;
  return { type: 'DESTINATION_CATALOG', destination_catalog: { operations: [operation] } };
};

export interface InputStream {
  readonly index: number;
  readonly idField: string;
}

export type InputStreams = (stream: StreamDescriptor) => InputStream | undefined;

type Scope = Pick<DestinationConfig, 'externalIdField' | 'streams'>;

/** Checks the whole configured catalog; throws one config failure that lists every problem, by stream. */
export function inputStreams(catalog: ConfiguredCatalog, scope: Scope): InputStreams {
  const problems: string[] = [];
  const streams = new Map<string, InputStream>();
  for (const [index, stream] of catalog.streams.entries()) {
    const idField = isActivation(stream) ? MATCHING_KEY : scope.externalIdField;
    for (const problem of problemsOf(stream, idField, scope)) problems.push(`stream ${stream.name}: ${problem}`);
    streams.set(streamKey(stream.descriptor), { index, idField });
  }
  if (problems.length > 0) {
    throw configError(`Nothing was deleted: the connection's streams cannot be used: ${problems.join('; ')}.`);
  }
  return (stream) => streams.get(streamKey(stream));
}

/** True for a stream of Airbyte's data activation, which maps it to one of the objects that `discover` offers. */
const isActivation = (stream: ConfiguredStream): boolean => stream.destinationObjectName !== undefined;

function problemsOf(stream: ConfiguredStream, idField: string, scope: Scope): string[] {
  const mode = isActivation(stream) ? activationProblem(stream) : modeProblem(stream);
  const all = [mode, generationProblem(stream), ...schemaProblems(stream, idField, scope)];
  return all.filter((problem) => problem !== undefined);
}

function modeProblem({ destinationSyncMode: mode }: ConfiguredStream): string | undefined {
  if (mode === 'append' || mode === 'append_dedup') return undefined;
  return `the sync mode ${JSON.stringify(mode)} has no meaning for deletions, wanted append or append_dedup`;
}

function activationProblem(stream: ConfiguredStream): string | undefined {
  const { destinationObjectName: object, destinationSyncMode: mode, primaryKey } = stream;
  if (object !== PROFILES) return `there is no object ${JSON.stringify(object)}, wanted ${PROFILES}`;
  if (mode !== 'soft_delete') return `${PROFILES} has no ${JSON.stringify(mode)}, wanted soft_delete`;
  const isKnownKey = primaryKey.length === 1 && primaryKey[0].length === 1 && primaryKey[0][0] === MATCHING_KEY;
  return primaryKey.length === 0 || isKnownKey ? undefined : `the matching key must be ${MATCHING_KEY} alone`;
}

/** Refuses a sync that truncates. PyAirbyte writes 1 into all three fields of every stream, which alone is accepted. */
function generationProblem(stream: ConfiguredStream): string | undefined {
  const { generationId: generation, minimumGenerationId: minimum, syncId } = stream;
  if (minimum === undefined || minimum === 0) return undefined;
  if (generation === 1 && minimum === 1 && syncId === 1) return undefined;
  return 'a refresh that removes what was there (minimum_generation_id above 0) has no meaning for deletions';
}

function schemaProblems({ name, jsonSchema }: ConfiguredStream, idField: string, scope: Scope): string[] {
  const properties = isObject(jsonSchema.properties) ? jsonSchema.properties : {};
  const names = Object.keys(properties);
  if (!names.includes(idField)) return [`its schema has no property ${JSON.stringify(idField)} (external_id_field)`];
  const out: string[] = [];
  if (!isText(properties[idField])) out.push(`the property ${JSON.stringify(idField)} is not a string in its schema`);
  const more = names.filter((one) => one !== idField && !one.startsWith('_'));
  if (more.length > 0 && !scope.streams.includes(name)) {
    const shown = more.slice(0, 5).map((one) => JSON.stringify(one));
    out.push(
      `it carries more than the ID (${shown.join(', ')}${more.length > shown.length ? ', …' : ''}), as a table of ` +
        'customers would: select the ID alone, or name the stream in "streams"',
    );
  }
  return out;
}

function isText(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== 'null');
  return types.length === 1 && types[0] === 'string';
}
