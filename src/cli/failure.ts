import { defectText, EXIT, type ExitCode, messageOf, UserError } from '../base/errors.ts';
import type { LogFields, Logger } from '../base/log.ts';
import { Stopped } from '../base/process.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import type { Context } from './context.ts';

/** What is told of an error that ended a command. */
export interface Failure {
  /** What a function of the library throws for it. */
  readonly error: unknown;
  readonly exitCode: ExitCode;
  /** One sentence for an expected failure; for a defect the stack, too. Without secrets. */
  readonly sentence: string;
  /** Its line of the log, with the sentence. */
  readonly level: 'warn' | 'error';
  readonly event: 'run.stopped' | 'run.failed' | 'run.defect';
  readonly fields?: LogFields;
  /** For maintainers, where the sentence does not say all. */
  readonly detail?: string;
}

export function failureOf(thrown: unknown, { signal, redactor }: Context): Failure {
  const error = diskErrorByItsPath(thrown);
  if (error instanceof Stopped || signal.aborted) {
    const reason: unknown = signal.reason ?? error;
    const sentence = redactor.mask(`${messageOf(reason)}. Run the same command again.`);
    return { error: reason, exitCode: exitCodeOfStop(reason), sentence, level: 'warn', event: 'run.stopped' };
  }
  if (error instanceof UserError) {
    const { kind, where, exitCode, message, detail } = error;
    const common = { error, exitCode, sentence: redactor.mask(messageIn(error)), fields: { kind, ...where } };
    return { ...common, level: 'error', event: 'run.failed', ...(detail !== message && { detail }) };
  }
  const sentence = redactor.mask(`a defect of dfinery-elt, please report it: ${defectText(error)}`);
  return { error, exitCode: EXIT.failed, sentence, level: 'error', event: 'run.defect' };
}

export function logFailure({ level, event, sentence, fields, detail }: Failure, logger: Logger): void {
  logger[level](event, sentence, fields);
  if (detail !== undefined) logger.debug(`${event}.detail`, detail);
}

/** The process ends by the signal itself, which a shell shows as this code. */
function exitCodeOfStop(reason: unknown): ExitCode {
  if (!(reason instanceof Stopped)) return EXIT.later;
  return reason.signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
}

/** The message of an error, with its day. */
const messageIn = ({ message, where: { day } }: UserError): string =>
  day === undefined || message.includes(day) ? message : `${day}: ${message}`;
