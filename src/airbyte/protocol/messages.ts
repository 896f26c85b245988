// The messages of the Airbyte protocol v0 that the connectors write. Key names are the protocol's own.

import { messageOf, systemError, UserError } from '../../base/errors.ts';
import type { JsonObject } from '../../base/json.ts';
import type { LogEvent } from '../../base/log.ts';
import { diskErrorByItsPath } from '../../fs/disk-failure.ts';

export interface StreamDescriptor {
  readonly name: string;
  /** Not empty. */
  readonly namespace?: string;
}

export interface AirbyteStream {
  readonly name: string;
  readonly json_schema: JsonObject;
  readonly supported_sync_modes: readonly ('full_refresh' | 'incremental')[];
  readonly source_defined_cursor?: boolean;
  readonly default_cursor_field?: readonly string[];
  readonly source_defined_primary_key: readonly (readonly string[])[];
  readonly is_resumable: boolean;
}

export type StreamStatus = 'STARTED' | 'RUNNING' | 'COMPLETE' | 'INCOMPLETE';

/** Every message that is written as an object. Records are written as bytes, echoed states as text. */
export type Message =
  | { readonly type: 'CATALOG'; readonly catalog: { readonly streams: readonly AirbyteStream[] } }
  | ReturnType<typeof specMessage | typeof connectionStatusMessage | typeof stateMessage>
  | ReturnType<typeof streamStatusMessage | typeof errorTraceMessage | typeof logMessage>;

const CONNECTORS = 'https://github.com/dfinery-elt/dfinery-elt/blob/main/connectors';

/** The answer of `spec`. `folder`: the connector's own; `schema`: that of its configuration. */
export const specMessage = (folder: string, schema: object, destinationSyncModes?: readonly string[]) =>
  ({
    type: 'SPEC',
    spec: {
      protocol_version: '0.2.0',
      documentationUrl: `${CONNECTORS}/${folder}/README.md`,
      changelogUrl: `${CONNECTORS}/${folder}/CHANGELOG.md`,
      connectionSpecification: schema,
      supportsIncremental: true,
      ...(destinationSyncModes && { supported_destination_sync_modes: destinationSyncModes }),
    },
  }) as const;

/** A stream's state; `recordCount` counts the records of that stream since its previous state. */
export const stateMessage = (stream: StreamDescriptor, state: object, recordCount: number) =>
  ({
    type: 'STATE',
    state: {
      type: 'STREAM',
      stream: { stream_descriptor: stream, stream_state: state },
      sourceStats: { recordCount },
    },
  }) as const;

export const connectionStatusMessage = (status: 'SUCCEEDED' | 'FAILED', message: string) =>
  ({ type: 'CONNECTION_STATUS', connectionStatus: { status, message } }) as const;

const LEVELS = { debug: 'DEBUG', info: 'INFO', warn: 'WARN', error: 'ERROR' } as const;

/** `event` and `fields` are ours: the protocol allows any other key. */
export const logMessage = ({ level, message, event, fields }: LogEvent) =>
  ({ type: 'LOG', log: { level: LEVELS[level], message, event, ...(fields && { fields }) } }) as const;

/** `quotaReset`: a RUNNING says that it waits for a limit to reset. Both instants are in ms since 1970. */
export function streamStatusMessage(
  stream: StreamDescriptor,
  status: StreamStatus,
  emittedAt: number,
  quotaReset: number | undefined,
) {
  const limit = quotaReset !== undefined && {
    reasons: [{ type: 'RATE_LIMITED', rate_limited: { quota_reset: Math.ceil(quotaReset) } }],
  };
  const stream_status = { stream_descriptor: stream, status, ...limit };
  return { type: 'TRACE', trace: { type: 'STREAM_STATUS', emitted_at: emittedAt, stream_status } } as const;
}

const DEFECT_MESSAGE = 'The connector failed in a way that was not foreseen; the log has the details for its makers.';

/** Converts anything that was thrown into a TRACE ERROR, secrets masked. `stream`: the only one that failed by it. */
export function errorTraceMessage(
  thrown: unknown,
  emittedAt: number,
  mask: (text: string) => string,
  stream?: StreamDescriptor,
) {
  const error = diskErrorByItsPath(thrown);
  const failure = error instanceof UserError ? error : systemError(DEFECT_MESSAGE, { detail: safeMessageOf(thrown) });
  const stack = stackOf(thrown);
  const errorTrace = {
    message: mask(failure.platformMessage),
    internal_message: mask(technicalText(failure)),
    ...(stack !== undefined && { stack_trace: mask(stack) }),
    failure_type: `${failure.kind}_error` as const,
    ...(stream !== undefined && { stream_descriptor: stream }),
  };
  return { type: 'TRACE', trace: { type: 'ERROR', emitted_at: emittedAt, error: errorTrace } } as const;
}

function technicalText({ detail, where }: UserError): string {
  const parts = Object.entries(where).map(([key, value]) => `${key} ${value}`);
  return parts.length === 0 ? detail : `${detail} (${parts.join(', ')})`;
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
