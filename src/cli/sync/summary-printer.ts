import { type ExitCode, messageOf } from '../../base/errors.ts';
import type { Context } from '../context.ts';
import { type Outcome, outcomeOf } from '../outcome.ts';
import { describeSummary, EMPTY_SUMMARY, type Summary, writeXcom } from './summary.ts';

export interface SummaryPrinter {
  /** Sets the summary so far. */
  update(summary: Summary): void;
  /** Sets a function that sends the final summary elsewhere before it is printed; it must not throw. */
  notifyWith(send: (summary: Summary) => Promise<void>): void;
  /** Does the work, then prints its summary whether it succeeded or failed; returns the exit code. */
  run(work: () => Promise<ExitCode>): Promise<ExitCode>;
}

interface SummaryPrinterOptions {
  readonly json: boolean;
  readonly xcom: string | undefined;
}

/**
 * Prints the summary of a run: a sentence for people, JSON for scripts; for a failed run too. Nothing is
 * written after the JSON: an orchestrator takes the last line of both streams as the result (S50).
 */
export function summaryPrinter(
  { json, xcom }: SummaryPrinterOptions,
  context: Context,
  target: string,
): SummaryPrinter {
  const { terminal, logger, redactor, signal } = context;
  let summary = EMPTY_SUMMARY;
  let send: (summary: Summary) => Promise<void> = async () => {};
  const summaryOf = (code: ExitCode, failed: Outcome | undefined): Summary => ({
    ...summary,
    exit: failed?.exit ?? code,
    error: failed === undefined ? null : redactor.mask(failed.message),
  });
  return {
    update(found) {
      summary = found;
    },
    notifyWith(sender) {
      send = sender;
    },
    async run(work) {
      let code: ExitCode = 0;
      let failed: Outcome | undefined;
      try {
        code = await work();
      } catch (error) {
        failed = outcomeOf(error, signal);
      }
      if (xcom !== undefined) {
        try {
          writeXcom(xcom, summaryOf(code, failed));
        } catch (error) {
          // The first failure is the one to report.
          if (failed === undefined) failed = outcomeOf(error, signal);
          else logger.warn('run.xcom', messageOf(error));
        }
      }
      const last = summaryOf(code, failed);
      const isShown = failed === undefined || summary.windows > 0;
      if (isShown) logger.info('run.summary', describeSummary(summary, target));
      failed?.log(logger);
      await send(last);
      if (json) terminal.result(JSON.stringify(last));
      return last.exit;
    },
  };
}
