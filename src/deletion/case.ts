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
  /** Of exactly this list, this service and this purge: what a confirmation must repeat. */
  readonly hash: string;
  /** The failure that the case ends with; undefined on success. */
  readonly failure: UserError | undefined;
}

/** What is about to be done, before anything of it is. */
interface Plan {
  readonly list: DeletionList;
  /** As they were before the first request. */
  readonly counts: ListCounts;
  /** The ids to be requested. */
  readonly wanted: readonly string[];
  readonly unfinished: UnfinishedRuns;
  readonly purge: Purge | undefined;
  readonly isPurgeOnly: boolean;
  /** The limit that the deletion or the purge exceeds, as a sentence. */
  readonly guard: string | undefined;
  /** What the ledger calls this list: a keyed hash. */
  readonly listName: string;
  readonly hash: string;
}

/** What became of a purge; an error is why people are still in a place. */
type PurgeOutcome = 'done' | 'not begun' | UserError;

/**
 * Deletes the people of a list: plans, tries, deletes, purges and proves, in this order. Rejects for what makes a plan or
 * the trial impossible, for a stop by the signal, and for defects; any other failure is part of the result, beside what was
 * done before it.
 */
export async function runDeletionCase(options: CaseOptions): Promise<CaseResult> {
  const { config, io, consent } = options;
  const { clock, logger, signal } = io;
  const began = clock.now();
  const ledgers = await LedgerStore.open({ config, isReal: consent !== undefined, clock, lines: io.lines });
  let ledger: Ledger | undefined;
  try {
    // Plan: whom the list names, what an unfinished run has done of it, and whom the places hold. Then the guards.
    const list = new DeletionList(async (text, stats) => {
      await ledger?.sync();
      await options.emitState?.(text, stats);
    });
    await options.read(list);
    const plan = await planCase(list, ledgers, options);
    const { counts, wanted, purge, isPurgeOnly, unfinished, listName, hash } = plan;
    const forecast = reportOf(plan, clock.now() - began);
    const refusal = consent && refusalOf(forecast, hash, consent, config);
    if (consent === undefined || refusal !== undefined) return { report: forecast, hash, failure: refusal };

    // Try all that the purge needs, before anybody is deleted.
    await purge?.trial();
    options.onBegin?.(forecast);

    // Delete at the service. From here on a failure ends what it is in, and is part of the result.
    let broken: UserError | undefined;
    const attempt = async (work: () => Promise<void>) => {
      try {
        await work();
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        broken ??= error;
      }
    };
    const ids = list.ids();
    // An input without ids leaves no run behind.
    const opening = { list: listName, resumes: unfinished.resumes, ids: wanted.length };
    const run = ids.length > 0 ? await ledgers.start(opening) : undefined;
    ledger = run;
    for (const { id } of isPurgeOnly ? ids : []) run?.add({ kind: 'purge_only', id: ledgers.key.idHash(id) });
    if (counts.received === 0 || counts.done_before > 0) list.start();
    const sent = newCounts();
    await attempt(async () => {
      if (run === undefined || wanted.length === 0) return;
      const { deleter } = options;
      await sendRequests({ ...io, list, counts: sent, ledger: run, key: ledgers.key, limits: config, deleter });
    });
    await attempt(() => list.emitted());
    // The purge may take long: the last answers are proof before it begins.
    await attempt(async () => run?.sync());

    // Purge those whom the service has deleted, unless the list was not worked through.
    const isOpen = !isPurgeOnly && list.idsWith(undefined).length > 0;
    const isStopped = signal.aborted && sent.undecided > 0;
    const isWorkedThrough = broken === undefined && sent.stoppedBy === undefined && !isOpen && !isStopped;
    const erased = isPurgeOnly ? ids.map(({ id }) => id) : list.idsWith('done');
    let purged = (purge === undefined || erased.length === 0 ? 'done' : 'not begun') as PurgeOutcome;
    try {
      await attempt(async () => {
        if (purged === 'done' || purge === undefined || run === undefined || !isWorkedThrough || signal.aborted) return;
        purged = worstOf(await purge.run(erased, run, unfinished.purging)) ?? 'done';
      });
    } finally {
      if (purged !== 'done') logger.warn('purge.open', openSentence(broken ?? purged, isPurgeOnly, config));
    }

    // Prove: without its closing line the next run goes on with this one.
    const isClosed = isWorkedThrough && broken === undefined && purged === 'done';
    const { done, rejected, undecided, requests } = sent;
    await attempt(async () => {
      if (isClosed) await run?.write({ kind: 'close', counts: { done, rejected, undecided, requests } });
      else await run?.sync();
    });
    const report = reportOf(plan, clock.now() - began, sent, run);
    const ending = failureOf(report, config, broken ?? (sent.stoppedBy && configError(sent.stoppedBy.message)));
    const failure = purged instanceof UserError ? worstOf([purged, ending]) : ending;
    return { report, hash, failure: failure ?? (purged === 'done' ? undefined : notPurged(config)) };
  } catch (error) {
    if (ledger !== undefined) await logHead(ledger, logger);
    throw error;
  } finally {
    await ledgers.close();
  }
}

async function planCase(list: DeletionList, ledgers: LedgerStore, options: CaseOptions): Promise<Plan> {
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
  const purge = options.purge && (await Purge.open(options.purge, list.ids()));
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

/** Without `sent`: of a plan. */
function reportOf(
  { counts, wanted, purge, isPurgeOnly, guard }: Plan,
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

/** Without a report this is the only message that has the head. */
async function logHead(ledger: Ledger, logger: Logger): Promise<void> {
  await ledger.sync().catch(() => {});
  const { head } = ledger;
  logger.warn('ledger.head', `Head of the ledger: ${head}`, { head });
}

/** Why a planned case is not carried out. */
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

/** A percentage has no exact binary form: 0.57 of 10,000 must not come out below 57. */
const ROUNDING = 1 + 2 ** -40;

/** The limit that `count`, the ids about to be requested in this run, exceeds, as a sentence; undefined if none. */
export function guardProblem(count: number, limits: GuardLimits): string | undefined {
  const { maxDeletionsPerSync: most, maxDeletionsPercent: percent, knownProfiles: known } = limits;
  if (count > most) {
    return `${plainCount(count, 'profile')} would be deleted, more than max_deletions_per_sync allows (${most}). If that is meant, raise max_deletions_per_sync to ${count} or more and run again.`;
  }
  if (percent === undefined || known === undefined || count * 100 <= percent * known * ROUNDING) return undefined;
  const share = ((count * 100) / known).toFixed(2);
  return `${plainCount(count, 'profile')} would be deleted, ${share} % of known_profiles (${known}), more than max_deletions_percent allows (${percent} %). If that is meant, raise max_deletions_percent and run again.`;
}

/** Every id is decided, and the purge did not take place. */
const notPurged = ({ ledgerDir }: DestinationConfig): UserError =>
  transientError(
    `The run was stopped after its last request: the purge that was to follow it was not done. Run again with the same list: ${
      ledgerDir === undefined
        ? 'all of it is asked for again, since the ledger is in the log'
        : 'nobody is asked for twice'
    }.`,
  );

/** Who reads that a purge failed must know what was done before it and cannot be taken back. */
function openSentence(why: UserError | 'not begun', isPurgeOnly: boolean, { ledgerDir }: DestinationConfig): string {
  const before = isPurgeOnly ? '' : 'These people are deleted at the service; ';
  const again =
    ledgerDir === undefined && !isPurgeOnly
      ? 'run again with --purge-only to do it without a further request'
      : 'run again with the same list to do it; who is deleted at the service is not asked for again';
  return `${before}the purge is not done: ${why === 'not begun' ? 'the run ended before.' : why.message} To finish it, ${again}.`;
}

const leftSentence = (places: readonly string[]): string =>
  `The unfinished run that this one goes on with was about to remove people from ${places.join(', ')}, which this one does not purge: they may still be there. Give --purge for it, too.`;
