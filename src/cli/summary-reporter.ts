import { type ExitCode, messageOf } from '../base/errors.ts';
import type { Context } from './context.ts';
import { describeSummary, EMPTY_SUMMARY, type Summary, writeXcom } from './summary.ts';

export interface Reporter {
  take(summary: Summary): void;
  /** Does the work, then prints its summary whichever way it ended. */
  around(work: () => Promise<ExitCode>): Promise<ExitCode>;
}

interface Wanted {
  readonly json: boolean;
  readonly xcom: string | undefined;
}

/** Prints the summary of a run: a sentence for people, JSON for scripts; a failed run tells how far it got. */
export function reporter({ json, xcom }: Wanted, { terminal, logger }: Context, target: string): Reporter {
  let summary = EMPTY_SUMMARY;
  let done = false;
  /** A run that failed fails for its own reason. */
  const tellXcom = (path: string, isDone: boolean) => {
    try {
      writeXcom(path, summary);
    } catch (error) {
      if (isDone) throw error;
      logger.warn('run.xcom', messageOf(error));
    }
  };
  return {
    take(found) {
      summary = found;
    },
    async around(work) {
      try {
        const code = await work();
        done = true;
        return code;
      } finally {
        if (done || summary.windows > 0) logger.info('run.summary', describeSummary(summary, target));
        if (json) terminal.result(JSON.stringify(summary));
        if (xcom !== undefined) tellXcom(xcom, done);
      }
    },
  };
}
