import { EXIT, type ExitCode, messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import { begunRun, type RunHistory } from '../../table/runs.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../failure.ts';
import type { Summary } from './summary.ts';

/**
 * Begins the record of a run in its target's history, before the first request; a target without a history keeps
 * none. Each way out of the run closes it, and a failure after its end changes it.
 */
export async function beginRecord(runs: RunHistory | undefined, context: Context) {
  const { clock, logger, signal, redactor } = context;
  const now = () => new Date(clock.now()).toISOString();
  const begun = begunRun(now(), VERSION);
  if (runs !== undefined) warnOfUnended(await runs.begin(begun), runs.isShared === true, context);
  const close = async (summary: Summary, exitCode: ExitCode, cause: string | null) => {
    const { rows, windows, exports, bytes } = summary;
    await runs?.end({ ...begun, ended: now(), exitCode, cause, rows, windows, exports, bytes });
  };
  return {
    end: (summary: Summary) => close(summary, EXIT.done, null),
    /** Throws nothing: that the record could not be closed is a warning beside the failure of the run. */
    async fail(summary: Summary, error: unknown): Promise<void> {
      const { exit, message } = failureOf(error, signal);
      await close(summary, exit, redactor.mask(message)).catch((failure: unknown) => {
        logger.warn('run.record', `The record of this run could not be closed: ${messageOf(failure)}`);
      });
    },
  };
}

const MAX_NAMED = 5;

function warnOfUnended(began: readonly string[], isShared: boolean, { logger }: Context): void {
  if (began.length === 0) return;
  const named = began.slice(-MAX_NAMED).join(', ');
  const many = began.length === 1 ? 'The run before, begun at' : `The last ${began.length} runs, begun at`;
  const more = began.length > MAX_NAMED ? ` (of these the latest ${MAX_NAMED})` : '';
  const still = isShared ? ', or still at work' : '';
  logger.warn(
    'run.unended',
    `${many} ${named}${more}, never ended: killed, or the machine stopped${still}. What was committed is whole; ` +
      'this run goes on from there.',
  );
}
