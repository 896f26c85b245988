import manifest from '../../../package.json' with { type: 'json' };
import { messageOf } from '../../base/errors.ts';
import type { RunHistory, RunOutcome } from '../../table/runs.ts';
import type { Context } from '../context.ts';
import { outcomeOf } from '../outcome.ts';
import type { Summary } from './summary.ts';

const NAMED = 5;

/**
 * Runs `work` with a record in the target's run history (S49): opened before the first request, closed however `work`
 * ends. `summary`: what was done so far. `afterwards` runs after the record is closed; if it fails, the record is changed to
 * say so. If `work` failed, a record that cannot be closed is only a warning.
 */
export async function withRunRecord(
  runs: RunHistory | undefined,
  context: Context,
  summary: () => Summary,
  work: () => Promise<void>,
  afterwards: () => Promise<void>,
): Promise<void> {
  if (runs === undefined) {
    await work();
    return afterwards();
  }
  const { clock, logger, signal, redactor } = context;
  const now = () => new Date(clock.now()).toISOString();
  warnOfUnended(await runs.begin(now(), manifest.version), runs.isShared === true, context);
  const close = async (end: Pick<RunOutcome, 'exitCode' | 'cause'>) => {
    const { rows, windows, exports, bytes } = summary();
    await runs.end(now(), { ...end, rows, windows, exports, bytes });
  };
  try {
    await work();
    await close({ exitCode: 0, cause: null });
    await afterwards();
  } catch (error) {
    const { exit, message } = outcomeOf(error, signal);
    await close({ exitCode: exit, cause: redactor.mask(message) }).catch((failure: unknown) => {
      logger.warn('run.record', `The record of this run could not be closed: ${messageOf(failure)}`);
    });
    throw error;
  }
}

function warnOfUnended(began: readonly string[], isShared: boolean, { logger }: Context): void {
  if (began.length === 0) return;
  const named = began.slice(-NAMED).join(', ');
  const many = began.length === 1 ? 'The run before, begun at' : `The last ${began.length} runs, begun at`;
  const more = began.length > NAMED ? ` (of these the latest ${NAMED})` : '';
  const still = isShared ? ', or still at work' : '';
  logger.warn(
    'run.unended',
    `${many} ${named}${more}, never ended: killed, or the machine stopped${still}. What was committed is whole; this run goes on from there.`,
  );
}
