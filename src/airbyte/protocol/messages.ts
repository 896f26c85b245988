import { type ErrorKind, messageOf, UserError } from '../../base/errors.ts';
import type { LogEvent } from '../../base/log.ts';
import { diskErrorByItsPath } from '../../fs/disk-failure.ts';

// The messages of the Airbyte protocol v0 that the connectors write. Key names are the protocol's own.

export interface StreamDescriptor {
  readonly name: string;
  /** Not empty. */
  readonly namespace?: string;
}

export type JsonSchema = Readonly<Record<string, unknown>>;

export interface ConnectorSpecification {
  readonly connectionSpecification: object;
  readonly protocol_version: string;
  readonly documentationUrl: string;
  readonly changelogUrl: string;
  readonly supportsIncremental?: boolean;
  readonly supported_destination_sync_modes?: readonly ('append' | 'append_dedup')[];
}

export interface AirbyteStream {
  readonly name: string;
  readonly json_schema: JsonSchema;
  readonly supported_sync_modes: readonly ('full_refresh' | 'incremental')[];
  readonly source_defined_cursor?: boolean;
  readonly default_cursor_field?: readonly string[];
  readonly source_defined_primary_key?: readonly (readonly string[])[];
  readonly is_resumable?: boolean;
}

export type StreamStatus = 'STARTED' | 'RUNNING' | 'COMPLETE' | 'INCOMPLETE';

type Trace =
  | {
      readonly type: 'ERROR';
      readonly error: {
        readonly message: string;
        readonly internal_message: string;
        readonly stack_trace?: string;
        readonly failure_type: (typeof FAILURE_TYPES)[ErrorKind];
        readonly stream_descriptor?: StreamDescriptor;
      };
    }
  | {
      readonly type: 'STREAM_STATUS';
      readonly stream_status: {
        readonly stream_descriptor: StreamDescriptor;
        readonly status: StreamStatus;
        readonly reasons?: readonly {
          readonly type: 'RATE_LIMITED';
          readonly rate_limited: { readonly quota_reset: number };
        }[];
      };
    };

/** Every message that is written as an object. Records are written as bytes, echoed states as text. */
export type Message =
  | { readonly type: 'SPEC'; readonly spec: ConnectorSpecification }
  | {
      readonly type: 'CONNECTION_STATUS';
      readonly connectionStatus: { readonly status: 'SUCCEEDED' | 'FAILED'; readonly message: string };
    }
  | { readonly type: 'CATALOG'; readonly catalog: { readonly streams: readonly AirbyteStream[] } }
  | {
      readonly type: 'STATE';
      /** The state of a stream; `stream_state` is any object that the source wants to get back. */
      readonly state: {
        readonly type: 'STREAM';
        readonly stream: { readonly stream_descriptor: StreamDescriptor; readonly stream_state: object };
        readonly sourceStats: { readonly recordCount: number };
      };
    }
  | {
      readonly type: 'LOG';
      /** `event` and `fields` are ours: the protocol allows any other key. */
      readonly log: {
        readonly level: 'ERROR' | 'WARN' | 'INFO' | 'DEBUG';
        readonly message: string;
        readonly event: string;
        readonly fields?: LogEvent['fields'];
      };
    }
  /** `emitted_at`: milliseconds since 1970, UTC. */
  | { readonly type: 'TRACE'; readonly trace: Trace & { readonly emitted_at: number } };

/** A stream's state; `recordCount` counts the records of that stream since its previous state. */
export const stateMessage = (stream: StreamDescriptor, state: object, recordCount: number): Message => ({
  type: 'STATE',
  state: {
    type: 'STREAM',
    stream: { stream_descriptor: stream, stream_state: state },
    sourceStats: { recordCount },
  },
});

/** The answer of `check`. */
export const connectionStatus = (status: 'SUCCEEDED' | 'FAILED', message: string): Message => ({
  type: 'CONNECTION_STATUS',
  connectionStatus: { status, message },
});

/** A change of a stream's status. `quotaReset` (ms) makes a RUNNING say that it waits for a limit to reset. */
export function statusMessage(
  stream: StreamDescriptor,
  status: StreamStatus,
  emittedAt: number,
  quotaReset?: number,
): Message {
  const limit = quotaReset !== undefined && {
    reasons: [{ type: 'RATE_LIMITED', rate_limited: { quota_reset: Math.ceil(quotaReset) } }] as const,
  };
  const stream_status = { stream_descriptor: stream, status, ...limit };
  return { type: 'TRACE', trace: { type: 'STREAM_STATUS', emitted_at: emittedAt, stream_status } };
}

const FAILURE_TYPES = {
  config: 'config_error',
  transient: 'transient_error',
  system: 'system_error',
} as const satisfies Record<ErrorKind, string>;

const DEFECT_MESSAGE = 'The connector failed in a way that was not foreseen; the log has the details for its makers.';

/** Converts anything that was thrown into a TRACE ERROR, secrets masked. `stream`: the only one that failed by it. */
export function errorTrace(
  thrown: unknown,
  emittedAt: number,
  mask: (text: string) => string,
  stream?: StreamDescriptor,
): Message {
  const failure = diskErrorByItsPath(thrown);
  const isExpected = failure instanceof UserError;
  const stack = stackOf(thrown);
  const error = {
    message: mask(isExpected ? failure.platformMessage : DEFECT_MESSAGE),
    internal_message: mask(isExpected ? technicalText(failure) : safeMessageOf(thrown)),
    ...(stack !== undefined && { stack_trace: mask(stack) }),
    failure_type: isExpected ? FAILURE_TYPES[failure.kind] : FAILURE_TYPES.system,
    ...(stream !== undefined && { stream_descriptor: stream }),
  };
  return { type: 'TRACE', trace: { type: 'ERROR', emitted_at: emittedAt, error } };
}

function technicalText({ technical, where }: UserError): string {
  const parts = Object.entries(where).map(([key, value]) => `${key} ${value}`);
  return parts.length === 0 ? technical : `${technical} (${parts.join(', ')})`;
}

/** The message of a failure, without the text that a parser quotes: it may be anybody's data. */
function safeMessageOf(thrown: unknown): string {
  if (thrown instanceof SyntaxError) return 'SyntaxError';
  return `${thrown instanceof Error ? thrown.name : typeof thrown}: ${messageOf(thrown)}`;
}

/** The frames of the stack without its message, which has a field of its own. */
function stackOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || thrown.stack === undefined) return undefined;
  const frames = thrown.stack.split('\n').filter((line) => /^\s+at /.test(line));
  const cause = thrown.cause instanceof Error ? [`caused by ${safeMessageOf(thrown.cause)}`] : [];
  return [thrown.name, ...frames, ...cause].join('\n');
}
