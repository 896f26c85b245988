import { type ExitCode, messageOf } from '../../base/errors.ts';
import type { Context } from '../context.ts';
import { type Outcome, outcomeOf } from '../outcome.ts';
import { describeSummary, EMPTY_SUMMARY, type Summary, writeXcom } from './summary.ts';

export interface Reporter {
  take(summary: Summary): void;
  /** Has the summary told to others, too, before it is printed; `tell` never throws. */
  tellOthers(tell: (summary: Summary) => Promise<void>): void;
  /** Does the work, then prints its summary whichever way it ended; gives the exit code. */
  around(work: () => Promise<ExitCode>): Promise<ExitCode>;
}

interface Wanted {
  readonly json: boolean;
  readonly xcom: string | undefined;
}

/**
 * Prints the summary of a run: a sentence for people, JSON for scripts; a failed run tells how far it got. Nothing
 * follows the JSON: an orchestrator takes the last line of both streams for the result (S50).
 */
export function reporter({ json, xcom }: Wanted, context: Context, target: string): Reporter {
  const { terminal, logger, redactor, signal } = context;
  let summary = EMPTY_SUMMARY;
  let tell: (summary: Summary) => Promise<void> = async () => {};
  const told = (code: ExitCode, failed: Outcome | undefined): Summary => ({
    ...summary,
    exit: failed?.exit ?? code,
    error: failed === undefined ? null : redactor.mask(failed.message),
  });
  return {
    take(found) {
      summary = found;
    },
    tellOthers(wanted) {
      tell = wanted;
    },
    async around(work) {
      let code: ExitCode = 0;
      let failed: Outcome | undefined;
      try {
        code = await work();
      } catch (error) {
        failed = outcomeOf(error, signal);
      }
      if (xcom !== undefined) {
        try {
          writeXcom(xcom, told(code, failed));
        } catch (error) {
          // A run that failed fails for its own reason.
          if (failed === undefined) failed = outcomeOf(error, signal);
          else logger.warn('run.xcom', messageOf(error));
        }
      }
      const last = told(code, failed);
      const isTold = failed === undefined || summary.windows > 0;
      if (isTold) logger.info('run.summary', describeSummary(summary, target));
      failed?.log(logger);
      await tell(last);
      if (json) terminal.result(JSON.stringify(last));
      return last.exit;
    },
  };
}
