// This folder: an erasure, from its list to its proof. `runErasure` is the whole of it. `list.ts` checks the list,
// `ways.ts` finds its people, `purge.ts` empties the places, `requests.ts` asks the service. `ledger/` keeps what
// happened.

import { configError, EXIT, severityOf, transientError, UserError } from '../base/errors.ts';
import { sha256OfJson } from '../base/json.ts';
import { count, withSeparators } from '../base/quantities.ts';
import type { RunContext } from '../base/runtime.ts';
import { codesText, type ErasurePlan, type ErasureReport, reportOf } from './erasure-report.ts';
import { Ledger, type LedgerSettings } from './ledger/ledger.ts';
import { type IdList, type ListedId, refusedSentence } from './list.ts';
import { type Purge, type PurgeSettings, peopleLimitProblem, planPurge, purgePlaces } from './purge.ts';
import {
  type Decision,
  type Deleter,
  NOT_REQUESTED,
  type Requested,
  type RequestLimits,
  sendRequests,
} from './requests.ts';
import { placeName } from './ways.ts';

/** The settings of an erasure, from either configuration. */
interface ErasureSettings extends LedgerSettings, RequestLimits {
  readonly maxDeletionsPerSync: number;
  readonly onRejected: 'continue' | 'fail';
  readonly requestedAtField: string | undefined;
}

export interface ErasureOptions {
  readonly settings: ErasureSettings;
  readonly io: RunContext;
  readonly list: IdList;
  /** Undefined: a plan, which changes nothing. `configured`: the configuration is the consent, as on a platform. */
  readonly consent: 'configured' | { readonly confirm: string } | undefined;
  /** Undefined: no request is sent. */
  readonly deleter: Deleter | undefined;
  /** Undefined: no place is purged. */
  readonly purgeSettings?: PurgeSettings | undefined;
  /** True to request also those whom the ledger knows as deleted. */
  readonly isAgain?: boolean;
  /** Called before the first request. */
  readonly onPlanned?: (report: ErasureReport) => void;
  /** Called once for each id that is requested, or was deleted before; the ledger has every answer by then. */
  readonly onDecided?: (id: string, decision: Decision, hasConfirmed: boolean) => void;
}

export interface ErasureResult {
  readonly report: ErasureReport;
  /** The failure that the erasure ends with; undefined on success. */
  readonly failure: UserError | undefined;
}

/**
 * Erases the people of a list, in five steps: plan, consent, purge, request, prove. The purge comes first: the service
 * still knows the profiles then. So after a kill the same command finds the same people. Without a consent it ends
 * after the plan. A failure of a place or of the service is part of the result, beside what was done. Rejects if a plan
 * is impossible, or if the hash is another one. Also if the ledger cannot be written, but for the purge of a place. A
 * stop by the signal and a defect reject, too.
 */
export async function runErasure(options: ErasureOptions): Promise<ErasureResult> {
  const { settings, io, consent, deleter } = options;

  // 1. Plan: everything that the execution will do, short of changing anything.
  const plan = await planErasure(options);
  const { ledger, purge, toRequest, doneBefore } = plan;
  const planReport = reportOf(plan, io.clock.now());

  // 2. Consent: the guards hold, and what was planned is what was confirmed.
  const failure = planFailure(plan);
  if (consent === undefined || failure !== undefined) return { report: planReport, failure };
  if (consent !== 'configured' && consent.confirm.trim().toLowerCase() !== plan.hash) {
    throw configError(
      'Nothing was deleted: this is not what was confirmed. The list, the places or a limit differ. ' +
        `Its hash is ${plan.hash}.`,
    );
  }
  options.onPlanned?.(planReport);
  if (plan.counts.ids > 0 || purge !== undefined) {
    const places = (options.purgeSettings?.places ?? []).map(placeName);
    await ledger.begin({ ids: toRequest.length, places, requests: deleter !== undefined });
  }

  // 3. Purge: everybody on the list leaves all places, whatever the service will answer.
  const purgeFailures = purge === undefined ? [] : await purgePlaces(purge);
  io.signal.throwIfAborted();

  // 4. Request: ask the service for everybody whom it has not deleted yet. After that it knows the profile no more, and
  // nothing would find rows that stayed in a place.
  const isPurged = purge?.places.every(({ result }) => result !== undefined) ?? true;
  const onDecided = (id: string, decision: Decision) => options.onDecided?.(id, decision, ledger.history.hasConfirmed);
  let requested = NOT_REQUESTED;
  if (isPurged && deleter !== undefined) {
    for (const { id } of doneBefore) onDecided(id, 'done');
    requested = await sendRequests({ ...io, entries: toRequest, ledger, limits: settings, deleter, onDecided });
  }
  io.signal.throwIfAborted();

  // 5. Prove: every claim of the report is a line of the ledger by now.
  const report = reportOf(plan, io.clock.now(), requested);
  const failures = [...purgeFailures, isPurged ? requestFailure(report, requested, options, ledger) : undefined];
  return { report, failure: worstOf(failures) };
}

/** Throws UserError for what makes the execution impossible. */
async function planErasure(options: ErasureOptions): Promise<ErasurePlan> {
  const { settings, io, list, consent, deleter, isAgain = false } = options;
  const began = io.clock.now();
  const { counts } = list;
  const entries = list.entries();
  const ledgerOptions = { clock: io.clock, isPlan: consent === undefined, ids: entries.map(({ id }) => id) };
  const ledger = await Ledger.open(settings, ledgerOptions);
  const isSuppressed = options.purgeSettings?.isSuppressed === true;
  const hasPurge = options.purgeSettings !== undefined && (entries.length > 0 || isSuppressed);
  const purge = hasPurge ? await planPurge(options.purgeSettings, entries, settings, ledger) : undefined;
  const isDone = (entry: ListedId): boolean => !isAgain && isDoneBefore(entry, ledger);
  const toRequest = deleter === undefined ? [] : entries.filter((entry) => !isDone(entry));
  const doneBefore = deleter === undefined ? [] : entries.filter(isDone);
  return {
    began,
    ledger,
    counts,
    purge,
    toRequest,
    doneBefore,
    isPurgeOnly: deleter === undefined,
    guard: requestLimitProblem(toRequest, ledger, settings) ?? (purge && peopleLimitProblem(purge)),
    hash: consentHash(list, purge, options),
    warnings: [
      counts.received > 0 || isSuppressed ? [] : 'The list is empty: nobody is deleted.',
      refusedSentence(counts) ?? [],
      list.warnings(),
      memorySentences(doneBefore, ledger, settings),
    ].flat(),
  };
}

/** True for an id that the ledger knows as deleted, unless its row is a new request. */
function isDoneBefore({ id, requestedAt }: ListedId, ledger: Ledger): boolean {
  const history = ledger.history.of(id);
  const answer = history?.lastAnswer;
  if (answer?.outcome !== 'done') return false;
  // A row that comes again is no new request: its deletion was confirmed already.
  const isNewRequest =
    requestedAt !== undefined &&
    requestedAt >= Date.parse(answer.at) &&
    requestedAt > (history?.requestedAt ?? Number.NEGATIVE_INFINITY);
  return !isNewRequest;
}

/** What the ledger remembers of the list, or that it remembers nothing. */
function memorySentences(doneBefore: readonly ListedId[], ledger: Ledger, settings: ErasureSettings): string[] {
  if (!ledger.isKept) {
    return ['There is no ledger_dir: nothing is remembered or proved, and each run requests every ID again.'];
  }
  if (doneBefore.length === 0) return [];
  const field = settings.requestedAtField;
  const later = field === undefined ? 'set requested_at_field' : `give a later time in the field ${field}`;
  const days = spanOf(doneBefore.flatMap(({ id }) => ledger.history.of(id)?.lastAnswer?.at.slice(0, 10) ?? []));
  return [
    `${count(doneBefore.length, 'ID was', 'IDs were')} deleted at the service before (${days}), and will not be requested ` +
      `again. To request them, give forget --again, or ${later}.`,
  ];
}

/** `2026-01-15`, `2026-01-15 to 2026-01-17` */
function spanOf(days: readonly string[]): string {
  const sorted = days.toSorted();
  const [from = '', to = ''] = [sorted.at(0), sorted.at(-1)];
  return from === to ? from : `${from} to ${to}`;
}

/** The limit that the requests exceed, as a sentence; an id that the service rejected before is no danger. */
function requestLimitProblem(toRequest: readonly ListedId[], ledger: Ledger, settings: ErasureSettings) {
  const { maxDeletionsPerSync: limit } = settings;
  const n = toRequest.filter(({ id }) => ledger.history.of(id)?.lastAnswer?.outcome !== 'rejected').length;
  if (n <= limit) return undefined;
  return (
    `${count(n, 'profile')} would be deleted, more than max_deletions_per_sync allows (${withSeparators(limit)}). If that is ` +
    `meant, set max_deletions_per_sync to ${n} or more.`
  );
}

/** The failure of an erasure that exceeds a limit, or has no usable ID in its rows: the field is probably wrong. */
function planFailure({ counts, guard }: ErasurePlan): UserError | undefined {
  const isWrongField = counts.ids === 0 && Object.keys(counts.refused).some((why) => why !== 'withdrawn');
  if (isWrongField)
    return configError(`Nothing was deleted. ${refusedSentence(counts)} Is the ID field the right one?`);
  return guard === undefined ? undefined : configError(`Nothing was deleted. ${guard}`, { exitCode: EXIT.guard });
}

/**
 * The hash of what an officer confirms. It never covers what ledger or service know: it stays valid for a second run.
 */
function consentHash(list: IdList, purge: Purge | undefined, options: ErasureOptions): string {
  const { settings, purgeSettings, deleter, isAgain = false } = options;
  const {
    places,
    profiles,
    column,
    isSuppressed = false,
    isNewList = false,
    maxPeople,
    allowsShared = false,
  } = purgeSettings ?? {};
  const pairs = [...(purge?.listedPeople.mapping ?? [])].map((pair) => JSON.stringify(pair)).sort();
  return sha256OfJson([
    'dfinery-elt erasure v1',
    [settings.baseUrl, settings.serviceId, settings.maxDeletionsPerSync],
    [list.digest, deleter === undefined, isAgain],
    [(places ?? []).map(placeName).sort(), profiles !== undefined, column ?? null, pairs],
    [isSuppressed, isNewList, maxPeople ?? null, allowsShared],
  ]);
}

/** If the service rejects all of so many ids, and never confirmed one, the ids are probably of another kind. */
const MIN_REJECTED = 10;

/** The failure of the requests, if any. */
function requestFailure(
  { done, undecided, rejected, to_request, ...report }: ErasureReport,
  { stoppedBy }: Requested,
  { settings, io }: ErasureOptions,
  ledger: Ledger,
): UserError | undefined {
  const hasPlaces = report.places.length > 0;
  const haveRowsLeft = hasPlaces && report.places.every(({ error }) => error === null);
  const rowsSentence = haveRowsLeft ? ' Their rows have left the places.' : '';
  const purgeOnlyHint = hasPlaces ? ' To purge places without asking the service, give --purge-only.' : '';
  if (stoppedBy !== undefined) {
    return configError(
      `${stoppedBy.message} ${withSeparators(done)} of ${count(to_request, 'ID')} are deleted.${rowsSentence}${purgeOnlyHint}`,
    );
  }
  if (undecided > 0) {
    const codes = codesText(report.undecided_codes);
    return transientError(
      `${withSeparators(done)} of ${count(to_request, 'ID')} are deleted at the service. Undecided: ${withSeparators(undecided)}` +
        `${codes && ` (${codes})`}.${rowsSentence} Run again: it goes on with those.${purgeOnlyHint}`,
    );
  }
  const isWrongField = done === 0 && rejected >= MIN_REJECTED && !ledger.history.hasConfirmed;
  if (isWrongField && ledger.isKept) {
    return configError(
      `The service rejected all ${withSeparators(rejected)} IDs (${codesText(report.rejected_codes)}), and has confirmed none ` +
        'before: the field with the IDs is probably wrong.',
    );
  }
  // Without a ledger nobody knows whether the service has confirmed an id before.
  if (isWrongField) io.logger.warn('erase.rejected', 'All IDs were rejected: is the field right?');
  if (settings.onRejected === 'continue' || rejected === 0) return undefined;
  return configError(`The service rejected ${count(rejected, 'ID')} (${codesText(report.rejected_codes)}).`, {
    exitCode: EXIT.guard,
  });
}

/** These failures as one, with the exit code of the most severe; undefined if there are none. */
function worstOf(failures: readonly (UserError | undefined)[]): UserError | undefined {
  const sorted = failures
    .filter((failure) => failure !== undefined)
    .sort((a, b) => severityOf(b.exitCode) - severityOf(a.exitCode));
  const [worst] = sorted;
  if (sorted.length < 2) return worst;
  const { kind, exitCode } = worst;
  return new UserError(kind, sorted.map(({ message }) => message).join(' '), { exitCode });
}
