// This folder: the case of a deletion, from its list to its proof. `input/` is what it reads, `ledger/` its proof,
// `destination/` the Airbyte connector that runs it.

import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { configError, EXIT, transientError, UserError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import type { Random } from '../base/random.ts';
import type { DestinationConfig } from '../config/destination.ts';
import type { DeletionService } from '../service/delete/answer.ts';
import { DeletionList, type EmitState, type ListCounts } from './input/deletion-list.ts';
import type { Ledger, LedgerOutput } from './ledger/ledger.ts';
import { LedgerStore, NO_UNFINISHED_RUNS, type ServiceName, type UnfinishedRuns } from './ledger/store.ts';
import { Purge, type PurgeRequest } from './purge.ts';
import { type DeletionReport, failureOf, nothingAccepted, reportOf, worstOf } from './report.ts';
import { type DeletionCounts, newCounts, sendRequests } from './send-requests.ts';

export interface RunContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly signal: AbortSignal;
  /** Receives the ledger's lines when no ledger folder is configured. */
  readonly lines: LedgerOutput | undefined;
}

/** Sends one deletion, without any retry or pacing of its own; never throws for what the service or the network did. */
export type ProfileDeleter = Pick<DeletionService, 'deleteProfile'>;

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

/**
 * Deletes the people of a list: plans, tries, deletes, purges and proves, in this order. Rejects for what makes a plan or
 * the trial impossible, for a stop by the signal, and for defects; any other failure is part of the result, beside what was
 * done before it.
 */
export async function runDeletionCase(options: CaseOptions): Promise<CaseResult> {
  const current = await Case.open(options);
  try {
    const { report, hash, refusal } = await current.plan();
    if (options.consent === undefined || refusal !== undefined) return { report, hash, failure: refusal };
    await current.try();
    options.onBegin?.(report);
    await current.delete();
    await current.purge();
    return { hash, ...(await current.prove()) };
  } catch (error) {
    await current.sayHead();
    throw error;
  } finally {
    await current.close();
  }
}

class Case {
  readonly #options: CaseOptions;
  readonly #ledgers: LedgerStore;
  readonly #list: DeletionList;
  readonly #isPurgeOnly: boolean;
  readonly #began: number;
  #purge: Purge | undefined;
  #unfinished: UnfinishedRuns = NO_UNFINISHED_RUNS;
  /** As they were before the first request. */
  #counts: ListCounts | undefined;
  /** What the ledger calls this list: a keyed hash. */
  #listName = '';
  #ledger: Ledger | undefined;
  readonly #sent = newCounts();
  /** What ended the deletion or the ledger early. */
  #broken: UserError | undefined;
  /** True as long as people are to be purged. */
  #isPurgeOpen = false;
  /** Why they could not be. */
  #open: UserError | undefined;

  private constructor(options: CaseOptions, ledgers: LedgerStore) {
    this.#options = options;
    this.#ledgers = ledgers;
    this.#isPurgeOnly = options.purge?.isOnly === true;
    this.#began = options.io.clock.now();
    this.#list = new DeletionList(async (text, stats) => {
      await this.#ledger?.sync();
      await options.emitState?.(text, stats);
    });
  }

  /** Opens, and with a consent locks, the ledger. */
  static async open(options: CaseOptions): Promise<Case> {
    const { config, io, consent } = options;
    const { clock, lines } = io;
    return new Case(options, await LedgerStore.open({ config, isReal: consent !== undefined, clock, lines }));
  }

  /** Reads the list, finds out what an unfinished run has done of it and whom the places hold, and asks the guards. */
  async plan(): Promise<{ report: DeletionReport; hash: string; refusal: UserError | undefined }> {
    const { config, io, read, purge, consent } = this.#options;
    await read(this.#list);
    const names = listHash(this.#list.digest, config);
    const { key } = this.#ledgers;
    // A purge without requests decides nobody: neither kind of run goes on with one of the other kind.
    this.#listName = key.listHash(this.#isPurgeOnly ? sha256(['dfinery-elt purge v1', names]) : names);
    this.#unfinished = await this.#ledgers.findUnfinished(this.#listName);
    const { notice, decisions, purging } = this.#unfinished;
    if (notice !== undefined) io.logger.warn('ledger.unfinished', notice);
    for (const { id } of decisions.size > 0 ? this.#list.ids() : []) {
      const decision = decisions.get(this.#hashOf(id));
      if (decision !== undefined) this.#list.decide(id, decision);
    }
    this.#counts = this.#list.counts;
    if (purge !== undefined) this.#purge = await Purge.open(purge, this.#list.ids());
    await this.#purge?.forecast();
    const left = [...purging.keys()].filter((place) => !this.#purge?.names.includes(place));
    if (left.length > 0) io.logger.warn('purge.left', leftSentence(left));
    const hash = this.#purge === undefined ? names : sha256(['dfinery-elt forget v3', names, this.#purge.consent]);
    const report = this.#report('dry_run');
    return { report, hash, refusal: consent && refusalOf(report, hash, consent) };
  }

  /** Tries all that the purge needs, before anything is deleted. */
  async try(): Promise<void> {
    await this.#purge?.try();
  }

  /** Asks the service for every id that is open. */
  async delete(): Promise<void> {
    const [ids, listed] = [this.#wanted, this.#list.ids()];
    // An input without ids leaves no run behind.
    const opening = { list: this.#listName, resumes: this.#unfinished.resumes, ids: ids.length };
    const ledger = listed.length === 0 ? undefined : await this.#ledgers.start(opening);
    this.#ledger = ledger;
    for (const { id } of this.#isPurgeOnly ? listed : []) ledger?.add({ kind: 'purge_only', id: this.#hashOf(id) });
    const { received, done } = this.#list.counts;
    if (received === 0 || done > 0) this.#list.start();
    await this.#keepError(async () => {
      if (ledger !== undefined && ids.length > 0) await this.#send(ids, ledger);
    });
    await this.#keepError(() => this.#list.emitted());
    // What follows may take long: the last answers are proof before it begins.
    await this.#keepError(async () => ledger?.sync());
  }

  /** Purges those whom the service has deleted. */
  async purge(): Promise<void> {
    const { config, io } = this.#options;
    const [purge, ledger] = [this.#purge, this.#ledger];
    const ids = this.#isPurgeOnly ? this.#list.ids().map(({ id }) => id) : this.#list.idsWith('done');
    if (purge === undefined || ledger === undefined || ids.length === 0) return;
    this.#isPurgeOpen = true;
    try {
      if (this.#isCutShort || io.signal.aborted) return;
      await this.#keepError(async () => {
        this.#open = worstOf(await purge.run(ids, ledger, this.#unfinished.purging));
      });
      this.#isPurgeOpen = this.#broken !== undefined || this.#open !== undefined;
    } finally {
      const why = (this.#broken ?? this.#open)?.message ?? 'the run ended before.';
      if (this.#isPurgeOpen) io.logger.warn('purge.open', openSentence(why, this.#isPurgeOnly, config));
    }
  }

  /** Ends the ledger; without its closing line the next run goes on with this one. */
  async prove(): Promise<Omit<CaseResult, 'hash'>> {
    const { done, rejected, undecided, requests } = this.#sent;
    const counts = { done, rejected, undecided, requests };
    const isClosed = !this.#isCutShort && !this.#isPurgeOpen;
    await this.#keepError(async () => {
      if (isClosed) await this.#ledger?.write({ kind: 'close', counts });
      else await this.#ledger?.sync();
    });
    const { config } = this.#options;
    const report = this.#report('executed');
    const ending = failureOf(report, config, this.#broken ?? stopOf(this.#sent));
    const failure = worstOf([this.#open, ending]);
    return { report, failure: failure ?? (isClosed ? undefined : unclosed(config)) };
  }

  /** Without a report this is the only message that has the head. */
  async sayHead(): Promise<void> {
    if (this.#ledger === undefined) return;
    await this.#ledger.sync().catch(() => {});
    const { head } = this.#ledger;
    this.#options.io.logger.warn('ledger.head', `Head of the ledger: ${head}`, { head });
  }

  async close(): Promise<void> {
    // What could not be written is in the result already.
    await this.#ledger?.close().catch(() => {});
    this.#ledgers.close();
  }

  get #wanted(): string[] {
    return this.#isPurgeOnly ? [] : this.#list.idsWith(undefined);
  }

  /** True when the list was not worked through: by a signal, an answer or a failure, or since the service is down. */
  get #isCutShort(): boolean {
    const { stoppedBy, undecided } = this.#sent;
    const isCut = this.#options.io.signal.aborted && undecided > 0;
    return isCut || this.#broken !== undefined || stoppedBy !== undefined || this.#wanted.length > 0;
  }

  /** A failure is part of the result; anything else is not expected. */
  async #keepError(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      this.#broken ??= error;
    }
  }

  #hashOf(id: string): string {
    return this.#ledgers.key.idHash(id).toString('hex');
  }

  #report(mode: DeletionReport['mode']): DeletionReport {
    const { config, io } = this.#options;
    const isPlan = mode === 'dry_run';
    const guard = isPlan ? (guardProblem(this.#wanted.length, config) ?? this.#purge?.problem) : undefined;
    return reportOf(this.#counts ?? this.#list.counts, isPlan ? undefined : this.#sent, {
      ...this.#purge?.sums,
      run: this.#ledger?.run ?? null,
      guard: guard ?? null,
      purge_only: this.#isPurgeOnly,
      places: this.#purge?.reports ?? [],
      unreached: this.#purge?.unreached ?? [],
      seconds: Math.round(io.clock.now() - this.#began) / 1_000,
      head: this.#ledger?.head ?? null,
    });
  }

  #send(ids: readonly string[], ledger: Ledger): Promise<void> {
    const { config, io, deleter } = this.#options;
    return sendRequests({
      ids,
      counts: this.#sent,
      onDecided: (id, decision) => {
        this.#list.decide(id, decision);
        if (decision === 'done') this.#list.start();
      },
      deleter,
      ledger,
      hashOf: (id) => this.#hashOf(id),
      limits: { requestsPerMinute: config.requestsPerMinute, maxConcurrent: config.maxConcurrentRequests },
      ...io,
    });
  }
}

/** A hash (64 hex digits) of exactly these ids (`digest`) and of the service that is to delete them. */
const listHash = (digest: string, { baseUrl, serviceId }: ServiceName): string =>
  sha256(['dfinery-elt forget v2', baseUrl, serviceId, digest]);

const sha256 = (parts: readonly unknown[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/** Why a planned case is not carried out. */
function refusalOf(
  plan: DeletionReport,
  hash: string,
  consent: Exclude<CaseOptions['consent'], undefined>,
): UserError | undefined {
  if (consent !== 'configured' && consent.confirm.trim().toLowerCase() !== hash) {
    return configError(
      `Nothing was deleted: the list, the service or the purge is not what was confirmed. Its hash is ${hash}; look at the plan again.`,
    );
  }
  return nothingAccepted(plan) ?? guardError(plan);
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

const guardError = ({ guard }: DeletionReport): UserError | undefined =>
  guard === null ? undefined : configError(`Nothing was deleted: ${guard}`, { exitCode: EXIT.guard });

const stopOf = ({ stoppedBy }: DeletionCounts): UserError | undefined => stoppedBy && configError(stoppedBy.message);

/** Every id is decided, and the purge did not take place. */
const unclosed = ({ ledgerDir }: DestinationConfig): UserError =>
  transientError(
    `The run was stopped after its last request: the purge that was to follow it was not done. Run again with the same list: ${
      ledgerDir === undefined
        ? 'all of it is asked for again, since the ledger is in the log'
        : 'nobody is asked for twice'
    }.`,
  );

/** Who reads that a purge failed must know what was done before it and cannot be taken back. */
function openSentence(why: string, isPurgeOnly: boolean, { ledgerDir }: DestinationConfig): string {
  const before = isPurgeOnly ? '' : 'These people are deleted at the service; ';
  const again =
    ledgerDir === undefined && !isPurgeOnly
      ? 'run again with --purge-only to do it without a further request'
      : 'run again with the same list to do it; who is deleted at the service is not asked for again';
  return `${before}the purge is not done: ${why} To finish it, ${again}.`;
}

const leftSentence = (places: readonly string[]): string =>
  `The unfinished run that this one goes on with was about to remove people from ${places.join(', ')}, which this one does not purge: they may still be there. Give --purge for it, too.`;
