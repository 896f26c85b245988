import { Ajv } from 'ajv';
import type { Json, Output, ParsedMessage } from './connector.ts';

/** The protocol's messages as far as we write them; whatever else an object holds is allowed, as there. */
const text = { type: 'string' };
const integer = { type: 'integer' };
const object = { type: 'object' };
const only = (...values: string[]) => ({ enum: values });
const shape = (properties: Json, ...optional: string[]) => ({
  type: 'object',
  properties,
  required: Object.keys(properties).filter((key) => !optional.includes(key)),
});
const listOf = (items: Json) => ({ type: 'array', items });
const descriptor = shape({ name: text, namespace: text }, 'namespace');
const stats = shape({ recordCount: { type: 'number' } });
const syncMode = only('full_refresh', 'incremental');

const PAYLOADS: Readonly<Record<string, Json>> = {
  RECORD: shape(
    {
      stream: text,
      data: object,
      emitted_at: integer,
      meta: shape({
        changes: listOf(
          shape({ field: text, change: only('NULLED', 'TRUNCATED'), reason: only('SOURCE_SERIALIZATION_ERROR') }),
        ),
      }),
    },
    'meta',
  ),
  STATE: shape({
    type: only('STREAM'),
    stream: shape({ stream_descriptor: descriptor, stream_state: object }),
    sourceStats: stats,
  }),
  LOG: shape({ level: only('FATAL', 'ERROR', 'WARN', 'INFO', 'DEBUG', 'TRACE'), message: text }),
  SPEC: shape({
    connectionSpecification: object,
    protocol_version: { type: 'string', pattern: '^0\\.\\d+\\.\\d+$' },
    documentationUrl: { type: 'string', pattern: '^https://' },
    changelogUrl: { type: 'string', pattern: '^https://' },
    supportsIncremental: { const: true },
  }),
  CONNECTION_STATUS: shape({ status: only('SUCCEEDED', 'FAILED'), message: text }, 'message'),
  CATALOG: shape({
    streams: {
      ...listOf(
        shape({
          name: text,
          json_schema: object,
          supported_sync_modes: { ...listOf(syncMode), minItems: 1 },
          source_defined_cursor: { type: 'boolean' },
          default_cursor_field: listOf(text),
          source_defined_primary_key: listOf(listOf(text)),
          is_resumable: { type: 'boolean' },
        }),
      ),
      minItems: 1,
    },
  }),
  TRACE: {
    oneOf: [
      shape({
        type: { const: 'ERROR' },
        emitted_at: { type: 'number', minimum: 1e12 },
        error: shape(
          {
            message: text,
            internal_message: text,
            stack_trace: text,
            failure_type: only('system_error', 'config_error', 'transient_error'),
            stream_descriptor: descriptor,
          },
          'stack_trace',
          'stream_descriptor',
        ),
      }),
      shape({
        type: { const: 'STREAM_STATUS' },
        emitted_at: { type: 'number', minimum: 1e12 },
        stream_status: shape(
          {
            stream_descriptor: descriptor,
            status: only('STARTED', 'RUNNING', 'COMPLETE', 'INCOMPLETE'),
            reasons: listOf(shape({ type: only('RATE_LIMITED'), rate_limited: shape({ quota_reset: integer }) })),
          },
          'reasons',
        ),
      }),
    ],
  },
};
/** The member of a message that holds what it says. */
const keyOf = (type: string) => (type === 'CONNECTION_STATUS' ? 'connectionStatus' : type.toLowerCase());

const ajv = new Ajv({ strict: false, allowUnionTypes: true });
const validators = new Map(Object.entries(PAYLOADS).map(([type, schema]) => [type, ajv.compile(schema)]));

/** What is wrong with the form of messages. */
export function formProblems(messages: readonly ParsedMessage[]): string[] {
  return messages.flatMap((message, i) => {
    const validate = validators.get(message.type);
    if (validate === undefined) return [`${i}: a message of type ${message.type}`];
    const payload = Object.entries(message).find(([name]) => name === keyOf(message.type))?.[1];
    return validate(payload) ? [] : [`${i} ${message.type}: ${ajv.errorsText(validate.errors)}`];
  });
}

interface StreamReport {
  readonly statuses: string[];
  /** Records since the last state. */
  since: number;
  states: number;
}

/** What is wrong with what a read printed, under its configured catalog. */
export function readProblems(output: Output, catalog: Json): string[] {
  const out = formProblems(output.messages);
  const streams = new Map(
    (catalog.streams as ConfiguredJson[]).map((configured) => [configured.stream.name, configured]),
  );
  const reports = new Map<string, StreamReport>();
  const of = (name: string): StreamReport => {
    const report = reports.get(name) ?? { statuses: [], since: 0, states: 0 };
    reports.set(name, report);
    return report;
  };
  const schemas = new Map([...streams].map(([name, { stream }]) => [name, ajv.compile(strictly(stream.json_schema))]));
  for (const [i, { record, state, trace }] of output.messages.entries()) {
    if (record !== undefined) {
      const stream = of(record.stream);
      const validate = schemas.get(record.stream);
      stream.since++;
      if (validate === undefined) out.push(`${i}: a record of ${record.stream}, which is not configured`);
      else if (!validate(record.data)) out.push(`${i}: ${record.stream} ${ajv.errorsText(validate.errors)}`);
      if (Object.keys(record.data).length === 0) out.push(`${i}: an empty record`);
      if (stream.statuses.at(-1) !== 'RUNNING') out.push(`${i}: a record while ${stream.statuses.at(-1)}`);
      const key = streams.get(record.stream)?.primary_key ?? [];
      if (key.some(([field]) => record.data[field as string] == null)) out.push(`${i}: a record without its key`);
    } else if (state !== undefined) {
      const stream = of(state.stream.stream_descriptor.name);
      if (stream.since !== state.sourceStats.recordCount) {
        out.push(
          `${i}: recordCount ${state.sourceStats.recordCount}, but ${stream.since} records since the last state`,
        );
      }
      if (stream.statuses.length === 0) out.push(`${i}: a state before STARTED`);
      if (['COMPLETE', 'INCOMPLETE'].includes(stream.statuses.at(-1) ?? '')) out.push(`${i}: a state after the end`);
      stream.since = 0;
      stream.states++;
    } else if (trace?.stream_status !== undefined) {
      const { stream_descriptor: at, status } = trace.stream_status;
      const stream = of(at.name);
      if (status === 'COMPLETE' && stream.since > 0) out.push(`${i}: COMPLETE with records after the last state`);
      stream.statuses.push(status);
    }
  }
  for (const name of streams.keys()) {
    const { statuses, states } = of(name);
    const last = statuses.at(-1);
    if (statuses[0] !== 'STARTED' || statuses.indexOf('STARTED', 1) > 0) out.push(`${name}: begins ${statuses.join()}`);
    if (last !== 'COMPLETE' && last !== 'INCOMPLETE') out.push(`${name}: ends ${last}`);
    if (last === 'COMPLETE' && states === 0) out.push(`${name}: no state`);
    if (last === 'COMPLETE' && statuses.length < 3) out.push(`${name}: only ${statuses.join()}`);
  }
  const failed = [...reports.values()].some(({ statuses }) => statuses.includes('INCOMPLETE'));
  if (failed === (output.code === 0))
    out.push(`exit ${output.code}, though streams ${failed ? 'failed' : 'are complete'}`);
  if (failed === (output.errors().length === 0)) out.push('errors and INCOMPLETE do not go together');
  return out;
}

interface ConfiguredJson {
  readonly stream: { readonly name: string; readonly json_schema: Json };
  readonly primary_key?: readonly (readonly string[])[];
}

const DATE = '^\\d{4}-\\d\\d-\\d\\d$';
const WALL = '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?$';
const INSTANT = '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d(\\.\\d+)?(Z|[+-]\\d\\d:\\d\\d)$';

/** The schema of a stream with nothing else allowed, and formats as patterns. */
function strictly(schema: Json): Json {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>).map(([name, property]) => {
    const { format, airbyte_type: type, ...schemaOfText } = property;
    if (format === 'date') return [name, { ...schemaOfText, pattern: DATE }];
    if (format !== 'date-time') return [name, schemaOfText];
    return [name, { ...schemaOfText, pattern: type === 'timestamp_without_timezone' ? WALL : INSTANT }];
  });
  return { type: 'object', additionalProperties: false, properties: Object.fromEntries(properties) };
}

/** What is wrong with a catalog, beyond its form. */
export function catalogProblems({ streams }: ReturnType<Output['catalog']>): string[] {
  const out: string[] = [];
  if (new Set(streams.map(({ name }) => name)).size !== streams.length) out.push('stream names repeat');
  for (const { name, json_schema: schema, ...stream } of streams) {
    const properties = new Map(Object.entries(schema.properties));
    for (const [field, property] of properties) {
      const types = [property.type].flat();
      if (types.length !== 2 || !types.includes('null')) out.push(`${name}.${field}: ${types.join()}`);
    }
    for (const field of stream.default_cursor_field ?? [])
      if (!properties.has(field)) out.push(`${name}: cursor ${field}`);
    for (const [field] of stream.source_defined_primary_key) {
      if (properties.get(field as string)?.type !== undefined) continue;
      out.push(`${name}: key ${field}`);
    }
    if (!stream.supported_sync_modes.includes('incremental')) continue;
    if (!stream.is_resumable || !stream.source_defined_cursor) out.push(`${name}: not resumable`);
    if (/"(\$ref|allOf|anyOf|not)":/.test(JSON.stringify(schema))) out.push(`${name}: keywords that are not allowed`);
  }
  return out;
}
