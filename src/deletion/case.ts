// This folder: the case of a deletion, from its list to its proof. `input/` is what it reads, `ledger/` its proof,
// `destination/` the Airbyte connector that runs it.

import type { Clock } from '../base/clock.ts';
import { configError, EXIT, transientError, UserError } from '../base/errors.ts';
import { sha256 } from '../base/json.ts';
import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import type { Random } from '../base/random.ts';
import type { DestinationConfig } from '../config/destination.ts';
import { DeletionList, type EmitState, type ListCounts } from './input/deletion-list.ts';
import type { LedgerKey } from './ledger/key.ts';
import type { Ledger, LedgerOutput } from './ledger/ledger.ts';
import { LedgerStore } from './ledger/store.ts';
import type { UnfinishedRuns } from './ledger/unfinished.ts';
import { Purge, type PurgeRequest } from './purge.ts';
import { type DeletionReport, failureOf, nothingAccepted, worstOf } from './report.ts';
import { newCounts, type ProfileDeleter, type RequestCounts, sendRequests } from './send-requests.ts';

export interface RunContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Receives the ledger's lines when no ledger folder is configured. */
  readonly lines: LedgerOutput | undefined;
}

export interface CaseOptions {
  readonly config: DestinationConfig;
  readonly io: RunContext;
  /** Fills the list with the whole input. */
  readonly read: (list: DeletionList) => Promise<void>;
  /** Undefined: a plan, which sends and changes nothing. `configured`: the configuration is the consent, as on a platform. */
  readonly consent: 'configured' | { readonly confirm: string } | undefined;
  readonly deleter: ProfileDeleter;
  readonly purge?: PurgeRequest | undefined;
  readonly emitState?: EmitState;
  /** Called before the first request. */
  readonly onBegin?: (plan: DeletionReport) => void;
}

export interface CaseResult {
  readonly report: DeletionReport;
  /** Hash of exactly this list, this service and this purge, which a confirmation must repeat. */
  readonly hash: string;
  /** The failure that the case ends with; undefined on success. */
  readonly failure: UserError | undefined;
}

/** The plan of a case, made before anything is sent or removed. */
interface DeletionPlan {
  readonly list: DeletionList;
  /** Counts of the list before the first request. */
  readonly counts: ListCounts;
  /** The ids to be requested. */
  readonly wanted: readonly string[];
  readonly unfinished: UnfinishedRuns;
  readonly purge: Purge | undefined;
  readonly isPurgeOnly: boolean;
  /** The limit that the deletion or the purge exceeds, as a sentence. */
  readonly guard: string | undefined;
  /** Name of the list in the ledger: a keyed hash. */
  readonly listName: string;
  readonly hash: string;
}

/** The outcome of the requests. */
interface DeletionOutcome {
  readonly sent: RequestCounts;
  /** True if every id of the list is decided, or no request was to be sent, and nothing failed or was stopped. */
  readonly isWorkedThrough: boolean;
  /** The first failure beside the answers of the service. */
  readonly failure: UserError | undefined;
}

/** The outcome of the purge. */
interface PurgeOutcome {
  /** `none`: there was nothing to purge; an error is why people are still in a place. */
  readonly purged: 'none' | 'done' | 'not begun' | UserError;
  /** Why the ledger could not be written. */
  readonly failure: UserError | undefined;
}

/**
 * Deletes the people of a list: plans, tries, deletes, purges and proves, in this order. Rejects for what makes a plan or
 * the trial impossible, for a stop by the signal, and for defects; any other failure is part of the result, beside what was
 * done before it.
 */
export async function runDeletionCase(options: CaseOptions): Promise<CaseResult> {
  const { config, io, consent } = options;
  const { clock, logger } = io;
  const began = clock.now();
  const ledgers = await LedgerStore.open({ config, isReal: consent !== undefined, clock, lines: io.lines });
  try {
    // Plan: whom the list names, what an unfinished run has done of it, and whom the places hold. Then the guards.
    const list = new DeletionList(async (text, stats) => {
      await ledgers.sync();
      await options.emitState?.(text, stats);
    });
    await options.read(list);
    const plan = await planCase(list, ledgers, options);
    const { hash } = plan;
    const forecast = reportOf(plan, clock.now() - began);
    const refusal = consent && refusalOf(forecast, hash, consent, config);
    if (consent === undefined || refusal !== undefined) return { report: forecast, hash, failure: refusal };

    // Try all that the purge needs, before anybody is deleted.
    await plan.purge?.trial();
    options.onBegin?.(forecast);

    // Delete, purge and prove: from here on a failure ends the step that it is in, and is part of the result.
    const run = await beginRun(plan, ledgers);
    try {
      const deletion = await deleteAtService(plan, run, ledgers.key, options);
      const purge = await purgePlaces(plan, run, deletion, options);
      const closing = await closeRun(run, deletion, purge);
      const report = reportOf(plan, clock.now() - began, deletion.sent, run);
      return { report, hash, failure: caseFailure(report, deletion, purge, closing, config) };
    } catch (error) {
      if (run !== undefined) await logHead(run, logger);
      throw error;
    }
  } finally {
    await ledgers.close();
  }
}

async function planCase(list: DeletionList, ledgers: LedgerStore, options: CaseOptions): Promise<DeletionPlan> {
  const { config, io } = options;
  const listHash = sha256(['dfinery-elt forget v2', config.baseUrl, config.serviceId, list.digest]);
  const isPurgeOnly = options.purge?.isOnly === true;
  // A purge without requests decides nobody: neither kind of run goes on with one of the other kind.
  const listName = ledgers.key.listHash(isPurgeOnly ? sha256(['dfinery-elt purge v1', listHash]) : listHash);
  const unfinished = await ledgers.findUnfinished(listName);
  const { notice, decisions, purging } = unfinished;
  if (notice !== undefined) io.logger.warn('ledger.unfinished', notice);
  for (const { id } of decisions.size > 0 ? list.ids() : []) {
    const decision = decisions.get(ledgers.key.idHash(id));
    if (decision !== undefined) list.decide(id, decision);
  }
  const purge = options.purge && (await Purge.open(options.purge, list.ids(), config));
  const left = [...purging.keys()].filter((place) => !purge?.names.includes(place));
  if (left.length > 0) io.logger.warn('purge.left', leftSentence(left));
  const wanted = isPurgeOnly ? [] : list.idsWith(undefined);
  return {
    list,
    counts: list.counts,
    wanted,
    unfinished,
    purge,
    isPurgeOnly,
    guard: guardProblem(wanted.length, config) ?? purge?.problem,
    listName,
    hash: purge === undefined ? listHash : sha256(['dfinery-elt forget v3', listHash, purge.consent]),
  };
}

/** The ledger of the run; undefined for an input without ids, which leaves no run behind. */
async function beginRun(
  { list, listName, unfinished, wanted }: DeletionPlan,
  ledgers: LedgerStore,
): Promise<Ledger | undefined> {
  if (list.ids().length === 0) return undefined;
  return ledgers.start({ list: listName, resumes: unfinished.resumes, ids: wanted.length });
}

/** Requests the deletion of all who are wanted; of a purge alone it only records whom it is about. */
async function deleteAtService(
  { list, counts, wanted, isPurgeOnly }: DeletionPlan,
  run: Ledger | undefined,
  key: LedgerKey,
  { config, io, deleter }: CaseOptions,
): Promise<DeletionOutcome> {
  for (const { id } of isPurgeOnly ? list.ids() : []) run?.add({ kind: 'purge_only', id: key.idHash(id) });
  if (counts.received === 0 || counts.done_before > 0) list.start();
  const sent = newCounts();
  const sending = await failureIn(async () => {
    if (run === undefined || wanted.length === 0) return;
    await sendRequests({ ...io, list, counts: sent, ledger: run, key, limits: config, deleter });
  });
  const emitting = await failureIn(() => list.emitted());
  // The purge may take long: the last answers are proof before it begins.
  const syncing = await failureIn(async () => run?.sync());
  const failure = sending ?? emitting ?? syncing;
  const isOpen = !isPurgeOnly && list.idsWith(undefined).length > 0;
  const isStopped = io.signal.aborted && sent.undecided > 0;
  const isWorkedThrough = failure === undefined && sent.stoppedBy === undefined && !isOpen && !isStopped;
  return { sent, isWorkedThrough, failure };
}

/** Purges those whom the service has deleted, unless the list was not worked through; warns of a purge that is not done. */
async function purgePlaces(
  { list, purge, isPurgeOnly, unfinished }: DeletionPlan,
  run: Ledger | undefined,
  deletion: DeletionOutcome,
  { config, io: { logger, signal } }: CaseOptions,
): Promise<PurgeOutcome> {
  const people = isPurgeOnly ? list.ids().map(({ id }) => id) : list.idsWith('done');
  if (purge === undefined || people.length === 0) return { purged: 'none', failure: undefined };
  const warn = (why: UserError | 'not begun') => logger.warn('purge.open', openSentence(why, isPurgeOnly, config));
  if (run === undefined || !deletion.isWorkedThrough || signal.aborted) {
    warn(deletion.failure ?? 'not begun');
    return { purged: 'not begun', failure: undefined };
  }
  try {
    const open = worstOf(await purge.run(people, run, unfinished.purging));
    if (open !== undefined) warn(open);
    return { purged: open ?? 'done', failure: undefined };
  } catch (error) {
    const failure = error instanceof UserError ? error : undefined;
    warn(failure ?? 'not begun');
    if (failure === undefined) throw error;
    return { purged: 'not begun', failure };
  }
}

/**
 * Ends the run in the ledger: with a closing line if it is complete, else without one, so that the next run resumes it.
 * Returns the failure if the ledger could not be written.
 */
async function closeRun(
  run: Ledger | undefined,
  { sent, isWorkedThrough }: DeletionOutcome,
  { purged, failure }: PurgeOutcome,
): Promise<UserError | undefined> {
  const isClosed = isWorkedThrough && failure === undefined && isSettled(purged);
  const { done, rejected, undecided, requests } = sent;
  return failureIn(async () => {
    if (isClosed) await run?.write({ kind: 'close', counts: { done, rejected, undecided, requests } });
    else await run?.sync();
  });
}

/** The failure that the case ends with: the first that broke a step, or what the service or the places left open. */
function caseFailure(
  report: DeletionReport,
  deletion: DeletionOutcome,
  { purged, failure }: PurgeOutcome,
  closing: UserError | undefined,
  config: DestinationConfig,
): UserError | undefined {
  const { stoppedBy } = deletion.sent;
  const broken = deletion.failure ?? failure ?? closing;
  const ending = failureOf(report, config, broken ?? (stoppedBy && configError(stoppedBy.message)));
  const all = purged instanceof UserError ? worstOf([purged, ending]) : ending;
  return all ?? (isSettled(purged) ? undefined : notPurged(config));
}

const isSettled = (purged: PurgeOutcome['purged']): boolean => purged === 'none' || purged === 'done';

/** Runs `work` and returns the UserError that it throws; rejects with any other error. */
async function failureIn(work: () => Promise<void>): Promise<UserError | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
}

/** Makes the report of a case; of its plan if `sent` is absent. */
function reportOf(
  { counts, wanted, purge, isPurgeOnly, guard }: DeletionPlan,
  elapsedMs: number,
  sent?: RequestCounts,
  ledger?: Ledger,
): DeletionReport {
  const { stoppedBy, ...requests } = sent ?? newCounts();
  return {
    v: 1,
    kind: 'deletion',
    mode: sent === undefined ? 'dry_run' : 'executed',
    run: ledger?.run ?? null,
    ...counts,
    ...requests,
    undecided: sent === undefined ? 0 : wanted.length - sent.done - sent.rejected,
    guard: sent === undefined ? (guard ?? null) : null,
    purge_only: isPurgeOnly,
    ...purge?.sums,
    places: purge?.reports ?? [],
    unreached: purge?.unreached ?? [],
    stopped_by: stoppedBy?.code ?? null,
    seconds: Math.round(elapsedMs) / 1_000,
    head: ledger?.head ?? null,
  };
}

/** Logs the head of the ledger: this is the only message that has it when a run ends without a report. */
async function logHead(ledger: Ledger, logger: Logger): Promise<void> {
  await ledger.sync().catch(() => {});
  const { head } = ledger;
  logger.warn('ledger.head', `Head of the ledger: ${head}`, { head });
}

/** The reason not to execute a plan; undefined if it may be executed. */
function refusalOf(
  plan: DeletionReport,
  hash: string,
  consent: Exclude<CaseOptions['consent'], undefined>,
  config: DestinationConfig,
): UserError | undefined {
  if (consent !== 'configured' && consent.confirm.trim().toLowerCase() !== hash) {
    return configError(
      `Nothing was deleted: the list, the service or the purge is not what was confirmed. Its hash is ${hash}; look at the plan again.`,
    );
  }
  const { guard } = plan;
  const stopped = guard === null ? undefined : configError(`Nothing was deleted: ${guard}`, { exitCode: EXIT.guard });
  return nothingAccepted(plan, config) ?? stopped;
}

type GuardLimits = Pick<DestinationConfig, 'maxDeletionsPerSync' | 'maxDeletionsPercent' | 'knownProfiles'>;

/**
 * Factor against rounding errors: a percentage has no exact binary form, and 0.57 of 10,000 must not come out below 57.
 */
const ROUNDING = 1 + 2 ** -40;

/** The limit that `count`, the ids about to be requested in this run, exceeds, as a sentence; undefined if none. */
export function guardProblem(count: number, limits: GuardLimits): string | undefined {
  const { maxDeletionsPerSync: most, maxDeletionsPercent: percent, knownProfiles: known } = limits;
  if (count > most) {
    return (
      `${plainCount(count, 'profile')} would be deleted, more than max_deletions_per_sync allows (${most}). If that ` +
      `is meant, raise max_deletions_per_sync to ${count} or more and run again.`
    );
  }
  if (percent === undefined || known === undefined || count * 100 <= percent * known * ROUNDING) return undefined;
  const share = ((count * 100) / known).toFixed(2);
  return (
    `${plainCount(count, 'profile')} would be deleted, ${share} % of known_profiles (${known}), more than ` +
    `max_deletions_percent allows (${percent} %). If that is meant, raise max_deletions_percent and run again.`
  );
}

/** The failure of a run whose ids are all decided and whose purge did not take place. */
const notPurged = ({ ledgerDir }: DestinationConfig): UserError =>
  transientError(
    `The run was stopped after its last request: the purge that was to follow it was not done. Run again with the same list: ${
      ledgerDir === undefined
        ? 'all of it is asked for again, since the ledger is in the log'
        : 'nobody is asked for twice'
    }.`,
  );

/** The sentence about a failed purge. It also says what was done before it and cannot be taken back. */
function openSentence(why: UserError | 'not begun', isPurgeOnly: boolean, { ledgerDir }: DestinationConfig): string {
  const before = isPurgeOnly ? '' : 'These people are deleted at the service; ';
  const again =
    ledgerDir === undefined && !isPurgeOnly
      ? 'run again with --purge-only to do it without a further request'
      : 'run again with the same list to do it; who is deleted at the service is not asked for again';
  return `${before}the purge is not done: ${why === 'not begun' ? 'the run ended before.' : why.message} To finish it, ${again}.`;
}

const leftSentence = (places: readonly string[]): string =>
  `The unfinished run that this one goes on with was about to remove people from ${places.join(', ')}, which this ` +
  'one does not purge: they may still be there. Give --purge for it, too.';
