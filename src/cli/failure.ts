import { defectText, EXIT, type ExitCode, messageOf, UserError } from '../base/errors.ts';
import { Stopped } from '../base/process.ts';
import { diskErrorByItsPath } from '../fs/disk-failure.ts';
import type { Context } from './context.ts';

interface Failure {
  readonly exit: ExitCode;
  /** One sentence for an expected failure; for a defect the stack, too. Without secrets. */
  readonly error: string;
  log(): void;
}

export function failureOf(thrown: unknown, { signal, redactor, logger }: Context): Failure {
  const error = diskErrorByItsPath(thrown);
  if (error instanceof Stopped || signal.aborted) {
    const reason: unknown = signal.reason ?? error;
    const message = `${messageOf(reason)}. Run the same command again.`;
    return { exit: stopExit(reason), error: redactor.mask(message), log: () => logger.warn('run.stopped', message) };
  }
  if (error instanceof UserError) {
    const message = messageIn(error);
    const log = () => {
      logger.error('run.failed', message, { kind: error.kind, ...error.where });
      if (error.detail !== error.message) logger.debug('run.failed.detail', error.detail);
    };
    return { exit: error.exitCode, error: redactor.mask(message), log };
  }
  const message = `a defect of dfinery-elt, please report it: ${defectText(error)}`;
  return { exit: EXIT.failed, error: redactor.mask(message), log: () => logger.error('run.defect', message) };
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
