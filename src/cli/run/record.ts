import { EXIT, messageOf } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import type { Sink } from '../../targets/contract.ts';
import type { Context } from '../context.ts';
import { failureOf } from '../failure.ts';
import type { RunResult } from './summary.ts';

/** Records a run in its place. Of a run that failed, a record that cannot be written is a warning only. */
export async function recordRun(
  sink: Pick<Sink, 'recordRun'>,
  began: number,
  { summary, error }: RunResult,
  { clock, logger, signal, redactor }: Context,
): Promise<void> {
  const failure = error === undefined ? undefined : failureOf(error, signal);
  const { rows, days, exports, bytes } = summary;
  const record = {
    began: new Date(began).toISOString(),
    ended: new Date(clock.now()).toISOString(),
    exitCode: failure?.exit ?? EXIT.done,
    cause: failure === undefined ? null : redactor.mask(failure.message),
    version: VERSION,
    rows,
    days,
    exports,
    bytes,
  };
  try {
    await sink.recordRun(record);
  } catch (problem) {
    if (failure === undefined) throw problem;
    logger.warn('run.record', `This run could not be recorded: ${messageOf(problem)}`);
  }
}
