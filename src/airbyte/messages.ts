import { type ErrorKind, messageOf, UserError } from '../base/errors.ts';

/** The messages of the Airbyte protocol v0 that are written here. Key names are the protocol's own. */

export interface StreamDescriptor {
  readonly name: string;
  readonly namespace?: string | null;
}

export type SyncMode = 'full_refresh' | 'incremental';
export type DestinationSyncMode = 'append' | 'overwrite' | 'append_dedup' | 'update' | 'soft_delete';
export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ConnectorSpecification {
  readonly connectionSpecification: object;
  readonly protocol_version: string;
  readonly documentationUrl: string;
  readonly changelogUrl: string;
  readonly supportsIncremental?: boolean;
  readonly supported_destination_sync_modes?: readonly DestinationSyncMode[];
}

export interface AirbyteStream {
  readonly name: string;
  readonly json_schema: JsonSchema;
  readonly supported_sync_modes: readonly SyncMode[];
  readonly source_defined_cursor?: boolean;
  readonly default_cursor_field?: readonly string[];
  readonly source_defined_primary_key?: readonly (readonly string[])[];
  readonly namespace?: string;
  readonly is_resumable?: boolean;
}

export interface DestinationOperation {
  readonly object_name: string;
  readonly sync_mode: DestinationSyncMode;
  readonly json_schema: JsonSchema;
  /** Alternatives, each a composite of top-level fields. */
  readonly matching_keys?: readonly (readonly string[])[];
}

export type Level = 'FATAL' | 'ERROR' | 'WARN' | 'INFO' | 'DEBUG' | 'TRACE';
type FailureType = 'config_error' | 'transient_error' | 'system_error';
export type StreamStatus = 'STARTED' | 'RUNNING' | 'COMPLETE' | 'INCOMPLETE';

interface TraceError {
  readonly message: string;
  readonly internal_message: string;
  readonly stack_trace?: string;
  readonly failure_type: FailureType;
  readonly stream_descriptor?: StreamDescriptor;
}

export interface StateStats {
  readonly recordCount: number;
  readonly rejectedRecordCount?: number;
}

/** One state of one stream; `stream_state` is whatever the source wants to see again. */
interface StreamStateMessage {
  readonly type: 'STREAM';
  readonly stream: { readonly stream_descriptor: StreamDescriptor; readonly stream_state: object };
  readonly sourceStats?: StateStats;
  readonly destinationStats?: StateStats;
}

interface Trace<T extends string> {
  readonly type: T;
  /** Milliseconds since 1970, UTC. */
  readonly emitted_at: number;
}

interface StatusTrace extends Trace<'STREAM_STATUS'> {
  readonly stream_status: {
    readonly stream_descriptor: StreamDescriptor;
    readonly status: StreamStatus;
    readonly reasons?: readonly {
      readonly type: 'RATE_LIMITED';
      readonly rate_limited: { readonly quota_reset: number };
    }[];
  };
}

export interface EstimateTrace extends Trace<'ESTIMATE'> {
  readonly estimate: {
    readonly name: string;
    readonly type: 'STREAM' | 'SYNC';
    readonly namespace?: string;
    readonly row_estimate?: number;
    readonly byte_estimate?: number;
  };
}

type TraceMessage = (Trace<'ERROR'> & { readonly error: TraceError }) | StatusTrace | EstimateTrace;

/** Everything that is written as an object; records and echoed states go out as bytes. */
export type Message =
  | { readonly type: 'SPEC'; readonly spec: ConnectorSpecification }
  | {
      readonly type: 'CONNECTION_STATUS';
      readonly connectionStatus: { readonly status: 'SUCCEEDED' | 'FAILED'; readonly message?: string };
    }
  | { readonly type: 'CATALOG'; readonly catalog: { readonly streams: readonly AirbyteStream[] } }
  | {
      readonly type: 'DESTINATION_CATALOG';
      readonly destination_catalog: { readonly operations: readonly DestinationOperation[] };
    }
  | { readonly type: 'STATE'; readonly state: StreamStateMessage }
  | {
      readonly type: 'LOG';
      readonly log: { readonly level: Level; readonly message: string; readonly [key: string]: unknown };
    }
  | { readonly type: 'TRACE'; readonly trace: TraceMessage };

export const spec = (value: ConnectorSpecification): Message => ({ type: 'SPEC', spec: value });

export const succeeded = (message?: string): Message => ({
  type: 'CONNECTION_STATUS',
  connectionStatus: { status: 'SUCCEEDED', ...(message !== undefined && { message }) },
});

export const failed = (message: string): Message => ({
  type: 'CONNECTION_STATUS',
  connectionStatus: { status: 'FAILED', message },
});

export const catalog = (streams: readonly AirbyteStream[]): Message => ({ type: 'CATALOG', catalog: { streams } });

export const destinationCatalog = (operations: readonly DestinationOperation[]): Message => ({
  type: 'DESTINATION_CATALOG',
  destination_catalog: { operations },
});

/** A stream's state; `recordCount` counts the records of that stream since its previous state. */
export const streamState = (stream: StreamDescriptor, state: object, recordCount: number): Message => ({
  type: 'STATE',
  state: {
    type: 'STREAM',
    stream: { stream_descriptor: stream, stream_state: state },
    sourceStats: { recordCount },
  },
});

export const log = (level: Level, message: string, more: Readonly<Record<string, unknown>> = {}): Message => ({
  type: 'LOG',
  log: { level, message, ...more },
});

const traceError = (error: TraceError, emittedAt: number): Message => ({
  type: 'TRACE',
  trace: { type: 'ERROR', emitted_at: emittedAt, error },
});

/** A change of a stream's status. `quotaReset` (ms) makes a RUNNING say that it waits for a limit to reset. */
export function streamStatus(
  stream: StreamDescriptor,
  status: StreamStatus,
  emittedAt: number,
  quotaReset?: number,
): Message {
  const reasons = [{ type: 'RATE_LIMITED', rate_limited: { quota_reset: Math.ceil(quotaReset ?? 0) } }] as const;
  return {
    type: 'TRACE',
    trace: {
      type: 'STREAM_STATUS',
      emitted_at: emittedAt,
      stream_status: { stream_descriptor: stream, status, ...(quotaReset !== undefined && { reasons }) },
    },
  };
}

/** What a stream is expected to hold; `estimate.type` must be the same throughout a run. */
export const estimate = (value: EstimateTrace['estimate'], emittedAt: number): Message => ({
  type: 'TRACE',
  trace: { type: 'ESTIMATE', emitted_at: emittedAt, estimate: value },
});

const FAILURE_TYPES = {
  config: 'config_error',
  transient: 'transient_error',
  system: 'system_error',
} as const satisfies Record<ErrorKind, FailureType>;

const UNEXPECTED = 'The connector failed in a way that was not foreseen; the log has the details for its makers.';

/** Anything that was thrown as a TRACE ERROR, secrets masked. */
export function traceOf(thrown: unknown, emittedAt: number, mask: (text: string) => string): Message {
  const isExpected = thrown instanceof UserError;
  const stack = stackOf(thrown);
  const stream = isExpected ? thrown.where.stream : undefined;
  return traceError(
    {
      message: mask(isExpected ? thrown.message : UNEXPECTED),
      internal_message: mask(isExpected ? internalOf(thrown) : safeMessageOf(thrown)),
      ...(stack !== undefined && { stack_trace: mask(stack) }),
      failure_type: isExpected ? FAILURE_TYPES[thrown.kind] : 'system_error',
      ...(stream !== undefined && { stream_descriptor: { name: stream } }),
    },
    emittedAt,
  );
}

function internalOf({ internal, where }: UserError): string {
  const parts = Object.entries(where).map(([key, value]) => `${key} ${value}`);
  return parts.length === 0 ? internal : `${internal} (${parts.join(', ')})`;
}

/** A parser's message quotes the text it choked on, which may be anybody's data. */
const safeMessageOf = (thrown: unknown): string =>
  thrown instanceof SyntaxError ? 'SyntaxError' : `${nameOf(thrown)}: ${messageOf(thrown)}`;

const nameOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.name : typeof thrown);

/** The frames alone: the message of an unforeseen error has its own place. */
function stackOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || thrown.stack === undefined) return undefined;
  const frames = thrown.stack.split('\n').filter((line) => /^\s+at /.test(line));
  const cause = thrown.cause instanceof Error ? [`caused by ${safeMessageOf(thrown.cause)}`] : [];
  return [thrown.name, ...frames, ...cause].join('\n');
}
