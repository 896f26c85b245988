// This folder: an erasure, from its list to its proof. `runErasure` is the whole of it. `list.ts` checks the list,
// `ways.ts` finds its people, `purge.ts` and `place.ts` empty the places, `requests.ts` asks the service. `ledger/`
// keeps what happened.

import { configError, EXIT, severityOf, transientError, UserError } from '../base/errors.ts';
import { sha256 } from '../base/json.ts';
import { count, grouped } from '../base/quantities.ts';
import type { RunIo } from '../base/runtime.ts';
import { codesOf, type DeletionReport, reportOf } from './erasure-report.ts';
import { Ledger, type LedgerSettings, type Remembered } from './ledger/ledger.ts';
import { DeletionList, type ListedId, refusedSentence } from './list.ts';
import { placeName } from './place.ts';
import { Purge, type PurgeRequest } from './purge.ts';
import type { RateLimits } from './rate-limiter.ts';
import { newCounts, type ProfileDeleter, type Requested, sendRequests } from './requests.ts';

/** The settings of an erasure, from either configuration. */
interface ErasureSettings extends LedgerSettings, RateLimits {
  readonly maxDeletionsPerSync: number;
  readonly onRejected: 'continue' | 'fail';
  readonly requestedAtField: string | undefined;
}

export interface ErasureOptions {
  readonly settings: ErasureSettings;
  readonly io: RunIo;
  /** Fills the list with the whole input. */
  readonly read: (list: DeletionList) => Promise<void>;
  /** Undefined: a plan, which changes nothing. `configured`: the configuration is the consent, as on a platform. */
  readonly consent: 'configured' | { readonly confirm: string } | undefined;
  /** Undefined: no request is sent. */
  readonly deleter: ProfileDeleter | undefined;
  readonly purge?: PurgeRequest | undefined;
  /**
   * True to request also those whom the ledger knows as deleted; undefined where nobody can say so, as on a platform.
   */
  readonly isAgain?: boolean;
  /** Called before the first request. */
  readonly onPlanned?: (report: DeletionReport) => void;
  /** Called when an id has its decision; the ledger has every answer by then. */
  readonly onDecided?: () => void;
}

export interface ErasureResult {
  readonly report: DeletionReport;
  /** The failure that the case ends with; undefined on success. */
  readonly failure: UserError | undefined;
}

/**
 * Erases the people of a list, in five steps: plan, consent, purge, request, prove. The purge comes first: the service
 * still knows the profiles then, so that after a kill the same command finds the same people. Without a consent it ends
 * after the plan. A failure of a place or of the service is part of the result, beside what was done. Rejects if a plan
 * is impossible, if the hash is another one, or if the ledger cannot be written. A stop by the signal and a defect
 * reject, too.
 */
export async function runErasure(options: ErasureOptions): Promise<ErasureResult> {
  const { settings, io, consent, deleter, onPlanned = () => {}, onDecided = () => {} } = options;

  // 1. Plan: everything that the execution will do, short of changing anything.
  const plan = await planErasure(options);
  const { ledger, toRequest, purge, report } = plan;

  // 2. Consent: the guards hold, and what was planned is what was confirmed.
  if (consent === undefined || plan.refusal !== undefined) return { report: report(), failure: plan.refusal };
  if (consent !== 'configured' && consent.confirm.trim().toLowerCase() !== plan.hash) {
    throw configError(
      `Nothing was deleted: this is not what was confirmed. The list, the places or a limit differ. Its hash is ${plan.hash}.`,
    );
  }
  onPlanned(report());
  if (plan.hasPeople) {
    const places = purge?.names ?? [];
    await ledger.begin({ ids: toRequest.length, places, requests: deleter !== undefined });
  }

  // 3. Purge: everybody on the list leaves all places, whatever the service will answer.
  const failures = (await purge?.run(ledger)) ?? [];
  io.signal.throwIfAborted();
  // After a request the service knows the profile no more, and nothing would find the rows that stayed.
  if (purge?.isPurged === false) return { report: report(NOT_REQUESTED), failure: worstOf(failures) };

  // 4. Request: ask the service for everybody whom it has not deleted yet.
  if (deleter !== undefined) deleter.hasDeleted ||= ledger.hasConfirmed;
  for (const listed of plan.doneBefore) {
    listed.decision = 'done';
    onDecided();
  }
  const requests = { ...io, ids: toRequest, ledger, limits: settings, onDecided };
  const requested = deleter === undefined ? NOT_REQUESTED : await sendRequests({ ...requests, deleter });
  io.signal.throwIfAborted();

  // 5. Prove: every claim of the report is a line of the ledger by now.
  const done = report(requested);
  return { report: done, failure: worstOf([...failures, requestFailure(done, requested, ledger, options)]) };
}

const NOT_REQUESTED: Requested = { counts: newCounts(), stoppedBy: undefined };

/** What is known before anything is sent or removed. Throws UserError for what makes the execution impossible. */
async function planErasure(options: ErasureOptions) {
  const { settings, io, consent, deleter } = options;
  const began = io.clock.now();
  const ledger = await Ledger.open(settings, { clock: io.clock, isPlan: consent === undefined });
  const list = new DeletionList();
  await options.read(list);
  const ids = list.ids();
  const { toRequest, doneBefore, sentences } = requestsOf(ids, ledger, options);
  const hasPeople = ids.length > 0 || options.purge?.isSuppressed === true;
  const service = { baseUrl: settings.baseUrl, serviceId: settings.serviceId };
  const purge = options.purge && hasPeople ? await Purge.plan(options.purge, ids, service, io) : undefined;
  const guard = guardProblem(toRequest, ledger, settings) ?? purge?.problem;
  const hash = consentHash(list, purge, options);
  const before = [
    emptySentence(list, options) ?? [],
    refusedSentence(list.counts) ?? [],
    list.warnings(),
    sentences,
    options.purge?.isNewList ? [] : olderSuppressionSentences(ledger, purge),
  ].flat();
  const report = (requested?: Requested) => {
    const planned = {
      ...list.counts,
      done_before: doneBefore.length,
      to_request: toRequest.length,
      guard: guard ?? null,
      purge_only: deleter === undefined,
      ids_with_profile: purge?.ofList.withProfile ?? null,
      places: purge?.reports ?? [],
      warnings: [...before, ...(purge?.warnings ?? [])],
      hash,
      seconds: Math.round(io.clock.now() - began) / 1_000,
    };
    return reportOf(planned, ledger, requested);
  };
  const refusal = nothingAccepted(list) ?? (guard === undefined ? undefined : guardError(guard));
  return { ledger, toRequest, doneBefore, hasPeople, purge, hash, refusal, report };
}

/** Whom the service is asked for, and whom the ledger knows as deleted; `sentences` say so. */
function requestsOf(ids: readonly ListedId[], ledger: Ledger, options: ErasureOptions) {
  const { deleter, isAgain, settings } = options;
  const toRequest: ListedId[] = [];
  const doneBefore: ListedId[] = [];
  const times: number[] = [];
  for (const listed of deleter === undefined ? [] : ids) {
    const memory = isAgain ? undefined : ledger.remembered(listed.id);
    if (memory?.outcome === 'done' && !isNewRequest(listed, memory)) {
      doneBefore.push(listed);
      times.push(memory.at);
    } else toRequest.push(listed);
  }
  const sentences: string[] = [];
  if (!ledger.isKept) {
    sentences.push('There is no ledger_dir: nothing is remembered or proved, and each run requests every ID again.');
  }
  if (times.length > 0) {
    const field = settings.requestedAtField;
    const later = field === undefined ? 'set requested_at_field' : `give a later time in the field ${field}`;
    sentences.push(
      `${count(times.length, 'ID was', 'IDs were')} deleted at the service before (${daysOf(times)}), and will not be requested ` +
        `again. To request them, ${isAgain === undefined ? '' : 'give --again, or '}${later}.`,
    );
  }
  return { toRequest, doneBefore, sentences };
}

/**
 * True for a request after the confirmation, and not the one that was confirmed: a row that comes again is no new one.
 */
const isNewRequest = ({ requestedAt: at }: ListedId, before: Remembered): boolean =>
  at !== undefined && at >= before.at && at > (before.requestedAt ?? Number.NEGATIVE_INFINITY);

/** A warning if list and places came out of one backup: then no place knows more people than the list. */
function olderSuppressionSentences({ suppressionLength: lastLength }: Ledger, purge: Purge | undefined): string[] {
  if (purge === undefined || lastLength <= purge.suppressionLength) return [];
  return [
    `The suppression list has ${count(purge.suppressionLength, 'person', 'people')}, and had ${grouped(lastLength)} at the last purge: ` +
      'it is an older copy. Those who are missing return while the service exports them.',
  ];
}

/** `2026-01-15`, `2026-01-15 to 2026-01-17` */
function daysOf(times: readonly number[]): string {
  const [first, last] = [Math.min, Math.max].map((of) => times.reduce((a, b) => of(a, b)));
  const [from, to] = [first, last].map((at) => new Date(at).toISOString().slice(0, 10));
  return from === to ? from : `${from} to ${to}`;
}

/** The guard of the number of requests, as a sentence; an id that the service rejected before is no danger. */
function guardProblem(ids: readonly ListedId[], ledger: Ledger, { maxDeletionsPerSync: most }: ErasureSettings) {
  const n = ids.filter(({ id }) => ledger.remembered(id)?.outcome !== 'rejected').length;
  if (n <= most) return undefined;
  return (
    `${count(n, 'profile')} would be deleted, more than max_deletions_per_sync allows (${grouped(most)}). If that is ` +
    `meant, set max_deletions_per_sync to ${n} or more.`
  );
}

const guardError = (guard: string) => configError(`Nothing was deleted. ${guard}`, { exitCode: EXIT.guard });

/** A failure if all rows were refused, which is most likely a mistake. */
function nothingAccepted(list: DeletionList): UserError | undefined {
  const { received, ids } = list.counts;
  if (received === 0 || ids > 0) return undefined;
  return configError(`Nothing was deleted. ${refusedSentence(list.counts)} Is the ID field the right one?`);
}

const emptySentence = ({ counts }: DeletionList, { purge }: ErasureOptions): string | undefined =>
  counts.received > 0 || purge?.isSuppressed === true ? undefined : 'The list is empty: nobody is deleted.';

/**
 * The hash of what an officer confirms; never of what ledger or service know, so that it stays valid for a second run.
 */
function consentHash(list: DeletionList, plan: Purge | undefined, options: ErasureOptions): string {
  const { settings, purge, deleter, isAgain = false } = options;
  const ways = purge?.ways;
  const pairs = (plan?.ofList.mapped ?? []).map((pair) => JSON.stringify(pair)).sort();
  return sha256([
    'dfinery-elt erasure v1',
    [settings.baseUrl, settings.serviceId, settings.maxDeletionsPerSync],
    [list.digest, deleter === undefined, isAgain],
    [(ways?.places ?? []).map(placeName).sort(), ways?.profiles !== undefined, ways?.column ?? null, pairs],
    [purge?.isSuppressed ?? false, purge?.isNewList ?? false, purge?.maxPeople ?? null, purge?.allowsShared ?? false],
  ]);
}

/** If the service rejects all of so many ids, and never confirmed one, the ids are probably of another kind. */
const MIN_REJECTED = 10;

/** The failure of the requests, if any. */
function requestFailure(
  { done, undecided, rejected, to_request, ...report }: DeletionReport,
  { stoppedBy }: Requested,
  ledger: Ledger,
  { settings, io, purge }: ErasureOptions,
): UserError | undefined {
  const hasPlaces = purge !== undefined;
  const places = hasPlaces ? ' Their rows have left the places.' : '';
  const alone = hasPlaces ? ' To purge places without asking the service, give --purge-only.' : '';
  if (stoppedBy !== undefined) {
    return configError(
      `${stoppedBy.message} ${grouped(done)} of ${count(to_request, 'ID')} are deleted.${places}${alone}`,
    );
  }
  if (undecided > 0) {
    const codes = codesOf(report.undecided_codes);
    return transientError(
      `${grouped(done)} of ${count(to_request, 'ID')} are deleted at the service. Undecided: ${grouped(undecided)}` +
        `${codes && ` (${codes})`}.${places} Run again: it goes on with those.${alone}`,
    );
  }
  const isWrongField = done === 0 && rejected >= MIN_REJECTED && !ledger.hasConfirmed;
  if (isWrongField && ledger.isKept) {
    return configError(
      `The service rejected all ${grouped(rejected)} IDs (${codesOf(report.rejected_codes)}), and has confirmed none ` +
        'before: the field with the IDs is probably wrong.',
    );
  }
  // Without a ledger nobody knows whether the service has confirmed an id before.
  if (isWrongField) io.logger.warn('erase.rejected', 'All IDs were rejected: is the field right?');
  if (settings.onRejected === 'continue' || rejected === 0) return undefined;
  return configError(`The service rejected ${count(rejected, 'ID')} (${codesOf(report.rejected_codes)}).`, {
    exitCode: EXIT.guard,
  });
}

/** All these failures as one, which ends the run as the most severe of them does; undefined if there are none. */
function worstOf(failures: readonly (UserError | undefined)[]): UserError | undefined {
  const sorted = failures
    .filter((failure) => failure !== undefined)
    .sort((a, b) => severityOf(b.exitCode) - severityOf(a.exitCode));
  const [worst] = sorted;
  if (sorted.length < 2) return worst;
  const { kind, exitCode } = worst;
  return new UserError(kind, sorted.map(({ message }) => message).join(' '), { exitCode });
}
