// This folder: the case of a deletion, from its list to its proof. `input/` is what it reads, `ledger/` its proof,
// `destination/` the Airbyte connector that runs it.

import { configError, EXIT, transientError, UserError } from '../base/errors.ts';
import { sha256 } from '../base/json.ts';
import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import type { Runtime } from '../base/runtime.ts';
import type { DestinationConfig } from '../config/destination.ts';
import { DeletionList, type EmitState } from './input/deletion-list.ts';
import type { LedgerKey } from './ledger/key.ts';
import { type Ledger, LedgerStore } from './ledger/ledger.ts';
import type { LedgerOutput } from './ledger/line.ts';
import type { RestQuery } from './ledger/unfinished.ts';
import { placeName } from './place-purge.ts';
import { isListPlace, Purge, type PurgeRequest } from './purge.ts';
import { type DeletionReport, deletionFailure, nothingAccepted, reportOf, worstOf } from './report.ts';
import { newCounts, type ProfileDeleter, type RequestCounts, sendRequests } from './send-requests.ts';

export interface RunContext extends Omit<Runtime, 'env'> {
  /** Receives the ledger's lines when no ledger folder is configured. */
  readonly lines: LedgerOutput | undefined;
}

export interface CaseOptions {
  readonly config: DestinationConfig;
  readonly io: RunContext;
  /** Fills the list with the whole input. */
  readonly read: (list: DeletionList) => Promise<void>;
  /**
   * Undefined: a plan, which sends and changes nothing. `configured`: the configuration is the consent, as on a
   * platform.
   */
  readonly consent: 'configured' | { readonly confirm: string } | undefined;
  readonly deleter: ProfileDeleter;
  readonly purge?: PurgeRequest | undefined;
  readonly emitState?: EmitState;
  /** Called before the first request. */
  readonly onBegin?: (forecast: DeletionReport) => void;
}

export interface CaseResult {
  readonly report: DeletionReport;
  /** Hash of exactly this list, this service and this purge, which a confirmation repeats. */
  readonly hash: string;
  /** The failure that the case ends with; undefined on success. */
  readonly failure: UserError | undefined;
}

/** What is known of a case before anything is sent or removed. */
type DeletionPlan = Awaited<ReturnType<typeof planCase>>;

/** Why people are still in a place after the purge; undefined if nobody is, or nobody was to be purged. */
type OpenPurge = UserError | 'not begun' | undefined;

/**
 * Deletes the people of a list: plans, tries, deletes, purges and proves, in this order. Rejects for what makes a plan
 * or the trial impossible, for a stop by the signal, and for defects; any other failure is part of the result, beside
 * what was done before it.
 */
export async function runDeletionCase(options: CaseOptions): Promise<CaseResult> {
  const { config, io, consent } = options;
  const { clock, signal } = io;
  const began = clock.now();
  const ledgers = await LedgerStore.open({ config, isReal: consent !== undefined, clock, lines: io.lines });
  try {
    // Plan: whom the list names, what an unfinished run has done of it, and whom the places hold. Then the guards.
    const plan = await planCase(ledgers, options);
    const { list, hash, isPurgeOnly } = plan;
    const forecast = reportOf(plan, clock.now() - began);
    if (consent === undefined) return { report: forecast, hash, failure: worstOf(plan.purge?.failures ?? []) };
    const failure = refusalOf(forecast, hash, consent, config);
    if (failure !== undefined) return { report: forecast, hash, failure };

    // Try all that the purge needs, before anybody is deleted.
    await plan.purge?.trial();
    options.onBegin?.(forecast);

    // From here on a failure ends the step that it is in, and the case goes on with what is left of the others. An
    // input without ids leaves no run behind.
    const { resumes } = plan.unfinished;
    const { listName, isRest, wanted, purge } = plan;
    const start = { list: listName, consent: plan.rest?.consent, resumes, ids: wanted.length, places: purge?.names };
    const run = plan.counts.ids === 0 && !isRest ? undefined : await ledgers.start(start);
    const failures: UserError[] = [];
    try {
      // Delete at the service. The purge may take long: the last answers are proof before it begins.
      const sent = newCounts();
      await keepingFailure(failures, () => deleteAtService(plan, run, sent, options));
      await keepingFailure(failures, () => list.emitted());
      await keepingFailure(failures, async () => run?.sync());
      const isStopped = sent.stoppedBy !== undefined || (signal.aborted && sent.undecided > 0);
      const isWorkedThrough = !isStopped && (isPurgeOnly || list.idsWith(undefined).length === 0);

      // Purge those whom the service has deleted.
      const open = await purgePlaces(plan, isWorkedThrough ? run : undefined, failures, options);

      // Prove: a run that is complete gets its closing line; one without it is resumed.
      const isComplete = isWorkedThrough && failures.length === 0 && open === undefined;
      await keepingFailure(failures, async () => (isComplete ? run?.write(closingLine(sent)) : run?.sync()));
      const report = reportOf(plan, clock.now() - began, sent, run);
      for (const { message } of failures.slice(1)) io.logger.warn('deletion.failure', message);
      const broken = failures[0] ?? (sent.stoppedBy && configError(sent.stoppedBy.message));
      return { report, hash, failure: caseFailure(report, broken, open, config) };
    } catch (error) {
      if (run !== undefined) await logHead(run, io.logger);
      throw error;
    }
  } finally {
    await ledgers.close();
  }
}

async function planCase(ledgers: LedgerStore, options: CaseOptions) {
  const { config, io } = options;
  const list = new DeletionList(async (text, stats) => {
    await ledgers.sync();
    await options.emitState?.(text, stats);
  });
  await options.read(list);
  const listHash = sha256(['dfinery-elt forget v2', config.baseUrl, config.serviceId, list.digest]);
  const isPurgeOnly = options.purge?.isPurgeOnly === true;
  // A purge without requests decides nobody: neither kind of run goes on with one of the other kind.
  const listName = ledgers.key.listHash(isPurgeOnly ? sha256(['dfinery-elt purge v1', listHash]) : listHash);
  const rest = restOf(list, options, ledgers.key);
  const unfinished = await ledgers.findUnfinished(listName, rest);
  const { notice, decisions, purging } = unfinished;
  if (notice !== undefined) io.logger.warn('ledger.unfinished', notice);
  for (const { id } of decisions.size > 0 ? list.ids() : []) {
    const decision = decisions.get(ledgers.key.idHash(id));
    if (decision !== undefined) list.decide(id, decision);
  }
  // An earlier run has deleted the people, or begun to purge them: no place has to wait for another any more.
  const isDeletionDecided = isPurgeOnly
    ? unfinished.resumes !== undefined
    : (list.idsWith('done').length > 0 || unfinished.wholeList !== undefined) && list.idsWith(undefined).length === 0;
  const purge = options.purge && (await Purge.open(options.purge, list.ids(), config, { isDeletionDecided }));
  const others = [...purging.keys()].filter((place) => !purge?.names.includes(place));
  if (others.length > 0) io.logger.warn('purge.left', otherPlacesSentence(others));
  const wanted = isPurgeOnly ? [] : list.idsWith(undefined);
  const guard = guardProblem(wanted.length, config) ?? purge?.problem;
  const ownHash = purge === undefined ? listHash : sha256(['dfinery-elt forget v3', listHash, purge.consent]);
  // What a mapping says of the rest may be another thing by now than what was confirmed.
  const isRest = unfinished.wholeList !== undefined && purge?.mapped.length === 0;
  return {
    list,
    /** Those before the first request. */
    counts: list.counts,
    wanted,
    unfinished,
    purge,
    isPurgeOnly,
    /** Names the limit that the deletion or the purge exceeds. */
    guard,
    rest,
    isRest,
    listName: unfinished.wholeList ?? listName,
    hash: (isRest ? confirmedBy(options.consent) : undefined) ?? ownHash,
  };
}

/**
 * The run of which a list may be the rest: one that was confirmed by the same hash, for the same purge. Undefined
 * unless the list is read from a place that is purged, since any other list stays as it was confirmed.
 */
function restOf(list: DeletionList, { consent, purge }: CaseOptions, key: LedgerKey): RestQuery | undefined {
  const confirmed = confirmedBy(consent);
  const listPlaces = purge?.places.filter((place) => isListPlace(place, purge)) ?? [];
  if (confirmed === undefined || purge === undefined || listPlaces.length === 0) return undefined;
  const { isPurgeOnly, places, column = null } = purge;
  const facts = ['dfinery-elt rest v1', confirmed, isPurgeOnly, places.map(placeName).sort(), column];
  const ids = list.ids().map(({ id }) => key.idHash(id));
  return { consent: key.listHash(sha256(facts)), ids, places: listPlaces.map(placeName) };
}

/** The hash that was confirmed; undefined if none was. */
const confirmedBy = (consent: CaseOptions['consent']): string | undefined =>
  consent === undefined || consent === 'configured' ? undefined : consent.confirm.trim().toLowerCase();

/** Runs a part of a step, and keeps the UserError that it throws; rejects with any other error. */
async function keepingFailure(failures: UserError[], work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    failures.push(error);
  }
}

/**
 * Requests the deletion of all who are wanted, counted in `sent`; of a purge alone it only records whom it is about.
 */
async function deleteAtService(
  { list, counts, wanted, isPurgeOnly }: DeletionPlan,
  ledger: Ledger | undefined,
  sent: RequestCounts,
  { config, io, deleter }: CaseOptions,
): Promise<void> {
  for (const { id } of isPurgeOnly ? list.ids() : []) ledger?.add({ kind: 'purge_only', id: ledger.key.idHash(id) });
  if (counts.received === 0 || counts.done_before > 0) list.start();
  if (ledger === undefined || wanted.length === 0) return;
  await sendRequests({ ...io, list, counts: sent, ledger, limits: config, deleter });
}

/** `run` is undefined if the list was not worked through: then nobody is purged. Warns of a purge that is not done. */
async function purgePlaces(
  { list, purge, isPurgeOnly, isRest, unfinished }: DeletionPlan,
  run: Ledger | undefined,
  failures: UserError[],
  { config, io: { logger, signal } }: CaseOptions,
): Promise<OpenPurge> {
  const people = isPurgeOnly ? list.ids().map(({ id }) => id) : list.idsWith('done');
  // Of the rest of a list perhaps nobody is left, but what the run before has left open, such as copies for readers.
  if (purge === undefined || (people.length === 0 && !isRest)) return undefined;
  let open = 'not begun' as OpenPurge;
  try {
    if (run === undefined || failures.length > 0 || signal.aborted) return open;
    await keepingFailure(failures, async () => {
      open = worstOf(await purge.run(people, run, unfinished.purging));
    });
    return open;
  } finally {
    const why = open === 'not begun' ? (failures[0] ?? open) : open;
    if (why !== undefined) logger.warn('purge.open', openSentence(why, isPurgeOnly, config));
  }
}

const closingLine = ({ done, rejected, undecided, requests }: RequestCounts) =>
  ({ kind: 'close', counts: { done, rejected, undecided, requests } }) as const;

/** The failure that the case ends with: `broken`, which ended a step early, or what service or places left open. */
function caseFailure(
  report: DeletionReport,
  broken: UserError | undefined,
  open: OpenPurge,
  config: DestinationConfig,
): UserError | undefined {
  const ending = deletionFailure(report, config, broken);
  return open === 'not begun' ? (ending ?? notPurged(config)) : worstOf([open, ending]);
}

/** Logs the head of the ledger: this is the only message that has it when a run ends without a report. */
async function logHead(ledger: Ledger, logger: Logger): Promise<void> {
  await ledger.sync().catch(() => {});
  const { head } = ledger;
  logger.warn('ledger.head', `Head of the ledger: ${head}`, { head });
}

/** Why a plan is not executed; undefined if it is. */
function refusalOf(
  forecast: DeletionReport,
  hash: string,
  consent: Exclude<CaseOptions['consent'], undefined>,
  config: DestinationConfig,
): UserError | undefined {
  if (consent !== 'configured' && confirmedBy(consent) !== hash) {
    return configError(
      `Nothing was deleted: the list, the service or the purge is not what was confirmed. Its hash is ${hash}; look at the plan again.`,
    );
  }
  const { guard } = forecast;
  const stopped = guard === null ? undefined : configError(`Nothing was deleted: ${guard}`, { exitCode: EXIT.guard });
  return nothingAccepted(forecast, config) ?? stopped;
}

type GuardLimits = Pick<DestinationConfig, 'maxDeletionsPerSync' | 'maxDeletionsPercent' | 'knownProfiles'>;

/** A percentage has no exact binary form: with this factor 0.57 % of 10,000 does not come out below 57. */
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
      ? 'run again with --purge-only, which sends no further request'
      : 'run again with the same list; who is deleted at the service is not asked for again';
  return `${before}the purge is not done: ${why === 'not begun' ? 'the run ended before.' : why.message} To finish it, ${again}.`;
}

const otherPlacesSentence = (places: readonly string[]): string =>
  `The unfinished run that this one goes on with did not finish its purge of ${places.join(', ')}, which this one does ` +
  'not purge: the people may still be there. Give --purge for it, too.';
