// This folder: what several folders use. It sends nothing, and reads no file but that of a secret.
//
//   failures         this file (`UserError`, exit codes), retry.ts, abort.ts
//   the process      runtime.ts (what work needs of it), clock.ts, env.ts, log.ts, process.ts, output-queue.ts, version.ts
//   secrets          secrets.ts, hash-key.ts
//   values as text   days.ts, quantities.ts, address.ts, placeholder.ts, json.ts, validator.ts, text.ts, sql.ts
//   bytes and lists  ascii.ts, byte-buffer.ts, byte-streams.ts, group.ts

/** Who must act on a failure: the user (`config`), nobody but time (`transient`), or us (`system`). */
export type ErrorKind = 'config' | 'transient' | 'system';

/** The command line's exit codes (0 is success). Connectors use them only to distinguish a success from a failure. */
export const EXIT = {
  done: 0,
  failed: 1, // A defect, or stored rows that differ from what was loaded.
  usage: 2, // Wrong usage or configuration.
  later: 3, // To try again later.
  lost: 4, // Days are lost at the service.
  guard: 5, // A guard has stopped a deletion.
  interrupted: 130, // SIGINT, as a shell has it.
  terminated: 143, // SIGTERM.
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Where a failure happened. Rows and bytes count from 1 and 0: row 1 is the header, byte 0 the first of the body. */
export interface FailurePosition {
  /** The day of an export. Logs have it under the same name. */
  readonly day?: string;
  readonly row?: number;
  readonly byte?: number;
}

export interface ErrorDetails {
  /** For maintainers; never a secret or a cell's text. */
  readonly detail?: string;
  readonly where?: FailurePosition;
  readonly exitCode?: ExitCode;
  readonly cause?: unknown;
  /** The message for who has a platform and no command line, where `message` names a command or an option. */
  readonly platformMessage?: string;
}

/** Every expected failure: `message` is one sentence for the user with what is wrong, where, and what to do. */
export class UserError extends Error {
  override readonly name: string = 'UserError';
  readonly kind: ErrorKind;
  readonly detail: string;
  readonly where: FailurePosition;
  readonly exitCode: ExitCode;
  readonly platformMessage: string;

  constructor(kind: ErrorKind, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.detail = details.detail ?? message;
    this.where = details.where ?? {};
    this.exitCode = details.exitCode ?? EXIT_OF_KIND[kind];
    this.platformMessage = details.platformMessage ?? message;
  }
}

const EXIT_OF_KIND: Record<ErrorKind, ExitCode> = { config: EXIT.usage, transient: EXIT.later, system: EXIT.failed };

export const configError = (message: string, details?: ErrorDetails) => new UserError('config', message, details);
export const transientError = (message: string, details?: ErrorDetails) => new UserError('transient', message, details);
export const systemError = (message: string, details?: ErrorDetails) => new UserError('system', message, details);

const MOST_SEVERE_FIRST: readonly ExitCode[] = [EXIT.failed, EXIT.usage, EXIT.lost, EXIT.guard, EXIT.later];

/** Sorts failures, the most severe first: of several the exit code is that of the first. */
export const bySeverity = (a: UserError, b: UserError): number =>
  MOST_SEVERE_FIRST.indexOf(a.exitCode) - MOST_SEVERE_FIRST.indexOf(b.exitCode);

export const messageOf = (thrown: unknown): string => (thrown instanceof Error ? thrown.message : String(thrown));

/** The text of a defect with its stack, in one line. */
export function defectText(thrown: unknown): string {
  const text = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
  return text.split(/\s*\n\s*/).join(' | ');
}

/** The `code` of a Node system error (`ENOSPC`, `ECONNRESET`, …), looked for along the chain of causes. */
export function codeOf(thrown: unknown): string | undefined {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const code = (error as { code?: unknown }).code;
    if (typeof code === 'string') return code;
  }
  return undefined;
}

export const hasCode = (thrown: unknown, codes: ReadonlySet<string>): boolean => codes.has(codeOf(thrown) ?? '');

/** Handles the error of a path that is not there; throws any other. */
export function undefinedIfAbsent(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error;
}
