// This folder: the case of a deletion, from its list to its proof. `input/` is what it reads, `ledger/` its proof,
// `destination/` the Airbyte connector that runs it.

import { createHash } from 'node:crypto';
import type { Clock } from '../base/clock.ts';
import { configFailure, EXIT, type Failure, transientFailure } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import type { DestinationConfig } from '../config/destination.ts';
import type { DeletionService } from '../service/delete/answer.ts';
import { guardProblem } from './guard.ts';
import { DeletionList, type EmitState, type ListCounts } from './input/deletion-list.ts';
import { Chain } from './ledger/chain.ts';
import { Ledger } from './ledger/ledger.ts';
import { openLedgerStore } from './ledger/open-store.ts';
import type { LedgerOutput } from './ledger/output.ts';
import { type LedgerStore, NO_UNFINISHED_RUNS, type ServiceName, type UnfinishedRuns } from './ledger/store.ts';
import { Purge, type PurgeRequest } from './purge.ts';
import { type DeletionReport, failureOf, nothingAccepted, reportOf } from './report.ts';
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
  readonly failure: Failure | undefined;
}

/**
 * Deletes the people of a list: plans, tries, deletes, purges and proves, in this order. Rejects for what makes a plan
 * impossible and for defects; any other failure is part of the result, beside what was done before it.
 */
export async function runDeletionCase(options: CaseOptions): Promise<CaseResult> {
  const current = await Case.open(options);
  try {
    const { report, hash, refusal } = await current.plan();
    if (options.consent === undefined || refusal !== undefined) return { report, hash, failure: refusal };
    await current.try();
    options.onBegin?.(report);
    const sent = await current.delete();
    const open = await current.purge(sent);
    return { hash, ...(await current.prove(sent, open)) };
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
  /** Hash of the list and its service. */
  #names = '';
  #ledger: Ledger | undefined;

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
    if (consent !== undefined) requireLedger(config);
    const { clock, lines } = io;
    return new Case(options, await openLedgerStore({ config, isReal: consent !== undefined, clock, lines }));
  }

  /** Reads the list, finds out what an unfinished run has done of it and whom the places hold, and asks the guards. */
  async plan(): Promise<{ report: DeletionReport; hash: string; refusal: Failure | undefined }> {
    const { config, io, read, purge, consent } = this.#options;
    await read(this.#list);
    this.#names = listHash(this.#list.digest, config);
    const { key } = this.#ledgers;
    this.#unfinished = await this.#ledgers.findUnfinished(key.listHash(this.#names));
    const { notice, decisions } = this.#unfinished;
    if (notice !== undefined) io.logger.warn('ledger.unfinished', notice);
    for (const { id } of decisions.size > 0 ? this.#list.ids() : []) {
      const decision = decisions.get(key.idHash(id).toString('hex'));
      if (decision !== undefined) this.#list.decide(id, decision);
    }
    this.#counts = this.#list.counts;
    if (purge !== undefined) this.#purge = await Purge.open(purge, this.#list.ids());
    await this.#purge?.forecast();
    const hash = this.#purge === undefined ? this.#names : consentHash(this.#names, this.#purge.consent);
    const report = this.#report(undefined);
    return { report, hash, refusal: consent && refusalOf(report, hash, consent) };
  }

  /** Tries all that the purge needs, before anything is deleted. */
  async try(): Promise<void> {
    await this.#purge?.try();
  }

  /** Asks the service for every id that is open. Rejects only for what makes going on impossible. */
  async delete(): Promise<DeletionCounts> {
    const { resumes } = this.#unfinished;
    const list = this.#ledgers.key.listHash(this.#names);
    const ids = this.#wanted;
    this.#ledger = await this.#start({ list, ...(resumes !== undefined && { resumes }), ids: ids.length });
    if (this.#isPurgeOnly) {
      for (const { id } of this.#list.ids()) this.#ledger.purgeOnly(this.#ledgers.key.idHash(id).toString('hex'));
    }
    const { received, done } = this.#list.counts;
    if (received === 0 || done > 0) this.#list.start();
    try {
      return ids.length === 0 ? newCounts() : await this.#send(ids, this.#ledger);
    } finally {
      await this.#list.emitted();
      // What follows may take long: the last answers are proof before it begins.
      await this.#ledger.sync();
    }
  }

  /** Purges those whom the service has deleted. Returns why it is not done, if it is not. */
  async purge(sent: DeletionCounts): Promise<Failure | undefined> {
    if (this.#isStopped(sent)) return unclosed();
    const ids = this.#isPurgeOnly ? this.#list.ids().map(({ id }) => id) : this.#list.idsWith('done');
    if (this.#purge === undefined || this.#ledger === undefined || ids.length === 0) return undefined;
    const open = await this.#purge.run(ids, this.#ledger, this.#unfinished.purging);
    if (open !== undefined) sayOpen(open, this.#isPurgeOnly, this.#options);
    return open;
  }

  /** Ends the ledger; without its closing line the next run goes on with this one. */
  async prove(sent: DeletionCounts, open: Failure | undefined): Promise<Omit<CaseResult, 'hash'>> {
    if (open === undefined) await this.#ledger?.finish(closingCounts(sent));
    await this.#ledger?.sync();
    const report = this.#report(sent);
    const failure = failureOf(report, this.#options.config, sent.stoppedBy?.message);
    return { report, failure: this.#isStopped(sent) ? (failure ?? open) : (open ?? failure) };
  }

  /** Without a report this is the only message that has the head. */
  async sayHead(): Promise<void> {
    if (!this.#ledger?.run) return;
    await this.#ledger.sync().catch(() => {});
    const { head } = this.#ledger;
    this.#options.io.logger.warn('ledger.head', `Head of the ledger: ${head}`, { head });
  }

  async close(): Promise<void> {
    try {
      await this.#ledger?.close();
    } finally {
      this.#ledgers.close();
    }
  }

  get #wanted(): string[] {
    return this.#isPurgeOnly ? [] : this.#list.idsWith(undefined);
  }

  /** True when the list was not worked through: stopped by a signal, by an answer, or since the service is down. */
  #isStopped({ stoppedBy }: DeletionCounts): boolean {
    return this.#options.io.signal.aborted || stoppedBy !== undefined || this.#wanted.length > 0;
  }

  #report(sent: DeletionCounts | undefined): DeletionReport {
    const { config, io } = this.#options;
    return reportOf({
      counts: this.#counts ?? this.#list.counts,
      sent,
      isPurgeOnly: this.#isPurgeOnly,
      places: this.#purge?.reports ?? [],
      sums: this.#purge?.sums,
      unreached: this.#purge?.unreached ?? [],
      guard: sent === undefined ? (guardProblem(this.#wanted.length, config) ?? this.#purge?.problem) : undefined,
      run: this.#ledger?.run || undefined,
      head: this.#ledger?.run ? this.#ledger.head : undefined,
      seconds: (io.clock.now() - this.#began) / 1_000,
    });
  }

  /** An input without ids leaves no run behind. */
  async #start(opening: Opening): Promise<Ledger> {
    const { config, io } = this.#options;
    const { requestedBy, reason } = config;
    if (this.#list.ids().length === 0) {
      return new Ledger('', new Chain(this.#ledgers.key), { async write() {}, async close() {} }, io.clock);
    }
    return this.#ledgers.start({
      ...opening,
      ...(requestedBy !== undefined && { requested_by: requestedBy }),
      ...(reason !== undefined && { reason }),
    });
  }

  #send(ids: readonly string[], ledger: Ledger): Promise<DeletionCounts> {
    const { config, io, deleter } = this.#options;
    return sendRequests({
      ids,
      onDecided: (id, decision) => {
        this.#list.decide(id, decision);
        if (decision === 'done') this.#list.start();
      },
      deleter,
      ledger,
      idHash: this.#ledgers.key.idHash,
      limits: { requestsPerMinute: config.requestsPerMinute, maxConcurrent: config.maxConcurrentRequests },
      ...io,
    });
  }
}

/** Where a real run leaves its proof must be known before anything is read. */
export function requireLedger(config: DestinationConfig): void {
  if (config.ledgerDir !== undefined || config.ledgerKey !== undefined) return;
  throw configFailure(
    'A run that deletes needs a ledger: set ledger_dir, or set ledger_key (or DFINERY_LEDGER_KEY) to have its lines in the log.',
  );
}

/** A hash (64 hex digits) of exactly these ids (`digest`) and of the service that is to delete them. */
const listHash = (digest: string, { baseUrl, serviceId }: ServiceName): string =>
  sha256(['dfinery-elt forget v2', baseUrl, serviceId, digest]);

const consentHash = (names: string, purge: readonly unknown[]): string =>
  sha256(['dfinery-elt forget v3', names, purge]);

const sha256 = (parts: readonly unknown[]): string => createHash('sha256').update(JSON.stringify(parts)).digest('hex');

/** Why a planned case is not carried out. */
function refusalOf(
  plan: DeletionReport,
  hash: string,
  consent: Exclude<CaseOptions['consent'], undefined>,
): Failure | undefined {
  if (consent !== 'configured' && consent.confirm.trim().toLowerCase() !== hash) {
    return configFailure(
      `Nothing was deleted: the list, the service or the purge is not what was confirmed. Its hash is ${hash}; look at the plan again.`,
    );
  }
  return nothingAccepted(plan) ?? guardFailure(plan);
}

const guardFailure = ({ guard }: DeletionReport): Failure | undefined =>
  guard === null ? undefined : configFailure(`Nothing was deleted: ${guard}`, { exitCode: EXIT.guard });

type Opening = Pick<Parameters<LedgerStore['start']>[0], 'list' | 'resumes' | 'ids'>;

const closingCounts = ({ done, rejected, undecided, requests }: DeletionCounts) => ({
  done,
  rejected,
  undecided,
  requests,
});

/** Not every id is decided, or what follows the last one did not take place. */
const unclosed = (): Failure =>
  transientFailure(
    'The run was stopped after its last request: what was to follow, such as a purge, was not done. Run again with the ' +
      'same list: nobody is asked for twice.',
  );

/** Who reads that a purge failed must know what was done before it and cannot be taken back. */
function sayOpen({ message }: Failure, isPurgeOnly: boolean, { config, io }: CaseOptions): void {
  const before = isPurgeOnly ? '' : 'These people are deleted at the service; ';
  const again =
    config.ledgerDir === undefined && !isPurgeOnly
      ? 'run again with --purge-only to do it without a further request'
      : 'run again with the same list to do it; who is deleted at the service is not asked for again';
  io.logger.warn('purge.open', `${before}the purge is not done: ${message} To finish it, ${again}.`);
}
