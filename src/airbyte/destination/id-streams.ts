import { configError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import type { ConfiguredStream } from '../protocol/catalog-and-states.ts';

type StreamRules = Pick<DestinationConfig, 'externalIdField' | 'requestedAtField' | 'streams'>;

/** Throws one config failure with the problems of all streams. Each must have ids, and only add to them. */
export function checkIdStreams(catalog: readonly ConfiguredStream[], rules: StreamRules): void {
  const problems = catalog.flatMap((stream) =>
    [...modeProblems(stream), ...schemaProblems(stream, rules)].map(
      (problem) => `stream ${stream.descriptor.name}: ${problem}`,
    ),
  );
  if (problems.length > 0)
    throw configError(`Nothing was deleted: the connection's streams cannot be used: ${problems.join('; ')}.`);
}

function modeProblems(stream: ConfiguredStream): string[] {
  const { destinationSyncMode: mode, generationId, minimumGenerationId: minimum = 0, syncId } = stream;
  if (mode !== 'append' && mode !== 'append_dedup') {
    return [`the sync mode ${JSON.stringify(mode)} has no meaning for deletions, wanted append or append_dedup`];
  }
  // PyAirbyte writes 1 into all three fields of every stream, whatever the mode.
  if (minimum === 0 || (generationId === 1 && minimum === 1 && syncId === 1)) return [];
  return ['a refresh that removes what was there (minimum_generation_id above 0) has no meaning for deletions'];
}

function schemaProblems({ descriptor, properties }: ConfiguredStream, rules: StreamRules): string[] {
  const { externalIdField: idField, requestedAtField: timeField, streams } = rules;
  if (!properties.has(idField)) return [`its schema has no property ${JSON.stringify(idField)} (external_id_field)`];
  const problems: string[] = [];
  if (!isStringSchema(properties.get(idField))) {
    problems.push(`the property ${JSON.stringify(idField)} is not a string in its schema`);
  }
  if (timeField !== undefined && !properties.has(timeField)) {
    problems.push(`its schema has no property ${JSON.stringify(timeField)} (requested_at_field)`);
  }
  const otherNames = [...properties.keys()].filter(
    (name) => name !== idField && name !== timeField && !name.startsWith('_'),
  );
  if (otherNames.length > 0 && !streams.includes(descriptor.name)) {
    const examples = otherNames.slice(0, 5).map((name) => JSON.stringify(name));
    problems.push(
      `it carries more than the ID (${examples.join(', ')}${otherNames.length > examples.length ? ', …' : ''}), as a table of ` +
        'customers would: select the ID alone, or name the stream in "streams"',
    );
  }
  return problems;
}

function isStringSchema(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const types = (Array.isArray(schema.type) ? schema.type : [schema.type]).filter((type) => type !== 'null');
  return types.length === 1 && types[0] === 'string';
}
