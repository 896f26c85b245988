import { defectText, EXIT, type ExitCode, messageOf, UserError } from '../base/errors.ts';
import { Stopped } from '../base/process.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import type { Context } from './context.ts';

/** What is told of an error that ended a command. */
export interface Failure {
  readonly thrown: unknown;
  readonly exit: ExitCode;
  /** One sentence for an expected failure; for a defect the stack, too. Without secrets. */
  readonly sentence: string;
  log(): void;
}

export function failureOf(thrown: unknown, { signal, redactor, logger }: Context): Failure {
  const error = diskErrorByItsPath(thrown);
  const failureWith = (exit: ExitCode, message: string, log: () => void): Failure => {
    return { thrown, exit, sentence: redactor.mask(message), log };
  };
  if (error instanceof Stopped || signal.aborted) {
    const reason: unknown = signal.reason ?? error;
    const message = `${messageOf(reason)}. Run the same command again.`;
    return failureWith(stopExit(reason), message, () => logger.warn('run.stopped', message));
  }
  if (error instanceof UserError) {
    const message = messageIn(error);
    return failureWith(error.exitCode, message, () => {
      logger.error('run.failed', message, { kind: error.kind, ...error.where });
      if (error.detail !== error.message) logger.debug('run.failed.detail', error.detail);
    });
  }
  const message = `a defect of dfinery-elt, please report it: ${defectText(error)}`;
  return failureWith(EXIT.failed, message, () => logger.error('run.defect', message));
}

/** The process ends by the signal itself, which a shell shows as this code. */
function stopExit(reason: unknown): ExitCode {
  if (!(reason instanceof Stopped)) return EXIT.later;
  return reason.signal === 'SIGINT' ? EXIT.interrupted : EXIT.terminated;
}

/** The message of an error; names its day and its attempt if the message itself does not. */
function messageIn({ message, where }: UserError): string {
  if (where.day === undefined || message.includes(where.day)) return message;
  return `${where.day}${where.attempt === undefined ? '' : `, attempt ${where.attempt}`}: ${message}`;
}
