import { randomUUID } from 'node:crypto';
import { EXIT, severityOf, UserError } from '../../base/errors.ts';
import { hashesOf } from '../../extract/export-request.ts';
import { discardShared } from '../../extract/extract.ts';
import { extractOptions } from '../../extract/session.ts';
import type { Sink, StreamSink } from '../../targets/sink.ts';
import type { Context } from '../context.ts';
import { type Failure, failureOf } from '../failure.ts';
import { type RunResult, type SyncRun, settingsOf, sync } from './run.ts';
import { type AlsoSummary, EMPTY_SUMMARY, type Summary } from './summary.ts';

interface TargetPlace {
  readonly target: string;
  readonly place: string;
  open(): Promise<Sink | StreamSink>;
}

interface TargetResult extends TargetPlace, RunResult {
  readonly failure?: Failure | undefined;
}

/**
 * Loads several targets one after the other from the same exports: what one has downloaded, the others read from the
 * spool. Each has its own plan, cursor and run record; one that fails is named, and the others go on. The summary
 * is that of the first, with the others in `also` and the requests of all; the error is the one with the worst exit
 * code.
 */
export async function syncAll(run: SyncRun, targets: readonly TargetPlace[], context: Context): Promise<RunResult> {
  const { logger, signal } = context;
  const shared = {
    command: randomUUID(),
    refusals: new Map(),
    waitBudgets: new Map(),
    concurrency: { max: Number.POSITIVE_INFINITY },
  };
  const results: TargetResult[] = targets.map((one) => ({ ...one, summary: EMPTY_SUMMARY }));
  for (const [i, one] of targets.entries()) {
    const { target, place } = one;
    logger.info('sync.loading', `Loading ${target} ${place}.`, { target, place });
    // Keeps the files for the next command if a target has failed and still lacks them.
    const keep = i < targets.length - 1 || results.some(({ failure }) => failure !== undefined);
    const publish = i === 0 ? run.publish : undefined;
    const { summary, error } = await sync({ ...run, publish, sharing: { ...shared, keep } }, one.open, context);
    const failure = error === undefined ? undefined : failureOf(error, signal);
    results[i] = { ...one, summary, error, failure };
    if (failure === undefined) continue;
    if (signal.aborted) {
      // The targets that were not begun are no more loaded than this one.
      const stopped = results.map((result, at) => (at < i ? result : { ...result, failure }));
      return { summary: joined(stopped, context), error };
    }
    const fields = { target, place, exit: failure.exit };
    logger.error('sync.target', `${target} ${place} failed: ${failure.message}`, fields);
  }
  const unremoved = () => removeShared(run, shared.command, context).catch((error: unknown) => error);
  return { summary: joined(results, context), error: worstError(results) ?? (await unremoved()) };
}

function worstError(results: readonly TargetResult[]): unknown {
  const severity = ({ failure }: TargetResult) => severityOf(failure?.exit ?? EXIT.done);
  // If several are equally severe, the earlier target counts.
  const [worst] = results.toSorted((a, b) => severity(b) - severity(a));
  const [first] = results;
  const { failure, error } = worst;
  if (worst === first || failure === undefined) return error;
  // `also` has no entry for the first target: the sentence names its failure as well.
  const sentences = [`${worst.target} ${worst.place}: ${failure.message}`];
  if (first.failure !== undefined) {
    const { exit, message } = first.failure;
    sentences.push(`${first.target} ${first.place} failed too (exit ${exit}): ${message}`);
  }
  const message = sentences.join(' ');
  if (error instanceof UserError) return error.with({ message });
  return new UserError('system', message, { exitCode: failure.exit, cause: error });
}

/** Removes the shared downloads; called when all targets have committed. */
async function removeShared(run: SyncRun, command: string, context: Context): Promise<void> {
  // If the days were named, other runs may need files of other commands: those stay.
  const isPartial = run.days.from !== undefined || run.days.to !== undefined;
  const { config } = run;
  const deps = { spoolDir: config.spoolDir, clock: context.clock, options: extractOptions(config) };
  await discardShared(hashesOf(settingsOf(run)), deps, isPartial ? command : undefined);
}

function joined(results: readonly TargetResult[], { redactor }: Context): Summary {
  const [first, ...others] = results;
  const also = others.map(({ target, place, summary, failure }): AlsoSummary => {
    const { rows, windows, next_from_date } = summary;
    const { exit, message } = failure ?? { exit: EXIT.done, message: null };
    return { target, place, rows, windows, next_from_date, exit, error: message && redactor.mask(message) };
  });
  const sum = (key: 'exports' | 'bytes' | 'seconds') => results.reduce((total, { summary }) => total + summary[key], 0);
  return { ...first.summary, exports: sum('exports'), bytes: sum('bytes'), seconds: sum('seconds'), also };
}
