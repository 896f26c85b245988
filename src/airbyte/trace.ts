import { Failure, type FailureKind, messageOf } from '../base/errors.ts';
import { type FailureType, type Message, traceError } from './messages.ts';

const FAILURE_TYPES = {
  config: 'config_error',
  transient: 'transient_error',
  system: 'system_error',
} as const satisfies Record<FailureKind, FailureType>;

const UNEXPECTED = 'The connector failed in a way that was not foreseen; the log has the details for its makers.';

/** Anything that was thrown as a TRACE ERROR, secrets masked. */
export function traceOf(thrown: unknown, emittedAt: number, mask: (text: string) => string): Message {
  const isExpected = thrown instanceof Failure;
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

function internalOf({ internal, where }: Failure): string {
  const places = Object.entries(where).map(([key, value]) => `${key} ${value}`);
  return places.length === 0 ? internal : `${internal} (${places.join(', ')})`;
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
