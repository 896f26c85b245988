import manifest from '../../../package.json' with { type: 'json' };
import { messageOf } from '../../base/errors.ts';
import type { RunHistory, RunOutcome } from '../../sinks/runs.ts';
import type { Context } from '../context.ts';
import { outcomeOf } from '../outcome.ts';
import type { Summary } from './summary.ts';

const NAMED = 5;

/**
 * Does the work between the two lines that a place keeps of a run (S49): begun before its first request, closed on every
 * way out. `summary`: what was done so far. `afterwards` finds the record closed; should it fail, the record says so. Of a
 * run that failed, a record that cannot be closed is a warning.
 */
export async function recorded(
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
  tellUnended(await runs.begin(now(), manifest.version), runs.isShared === true, context);
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

function tellUnended(began: readonly string[], isShared: boolean, { logger }: Context): void {
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
