// This folder: an erasure, from its list to its proof. `runErasure` is the whole of it: `erasure-plan.ts` plans it, and
// `erasure-report.ts` says what it did. `list/` checks the list. `planned-id.ts` decides what is done with each of its
// ids. `listed-people.ts` finds the people in the places, and `profiles-of-ids.ts` at the service. `purge-plan.ts`
// looks into the places, `purge.ts` empties them, and `suppression-list.ts` keeps the people out. `requests.ts` asks the
// service, as fast as `rate-limiter.ts` allows. `show-people.ts` shows people's rows. `ledger/` keeps what happened. It
// imports from `list/`, and of this folder `key-file.ts` alone, which keeps keys.

import { bySeverity, configError, EXIT, transientError, UserError } from '../base/errors.ts';
import { formatCount, withSeparators } from '../base/quantities.ts';
import { type ErasureOptions, type ErasurePlan, planErasure, planFailure } from './erasure-plan.ts';
import { codesText, type ErasureReport, reportOf } from './erasure-report.ts';
import { lockErasures } from './ledger/ledger.ts';
import { purgePlaces } from './purge.ts';
import { type RequestResult, sendRequests } from './requests.ts';

export interface ErasureResult {
  /** Of the plan, if the erasure ended with it. */
  readonly report: ErasureReport;
  /** Why the plan cannot be carried out, or what its execution left undone. */
  readonly failure: UserError | undefined;
}

/**
 * Erases the people of a list, in five steps: plan, consent, purge, request, report. The purge comes first: the service
 * still knows the profiles then. So after a kill the same command finds the same people. Without a consent it ends
 * after the plan. A failure of a place or of the service is part of the result, beside what was done. Rejects if a plan
 * is impossible, the hash is another one, another erasure uses the ledger, the signal aborts, or the ledger fails (in a
 * purge: a failure of its place).
 */
export async function runErasure(options: ErasureOptions): Promise<ErasureResult> {
  const { settings, runtime, consent } = options;
  const lock = consent === 'none' ? undefined : await lockErasures(settings, runtime);
  try {
    return await runSteps(options);
  } finally {
    lock?.release();
  }
}

async function runSteps(options: ErasureOptions): Promise<ErasureResult> {
  const { runtime, list, consent, requestSettings, onDecided } = options;
  const beganAt = runtime.clock.now();

  // 1. Plan: everything that the execution will do, short of changing anything.
  const plan = await planErasure(options);
  const { ledger, purgePlan, plannedIds, idsToRequest } = plan;

  // 2. Consent: the guards hold, and what was planned is what was confirmed.
  const failure = planFailure(plan);
  if (consent === 'none' || failure !== undefined)
    return { report: reportOf(plan, 'plan', runtime.clock.now() - beganAt), failure };
  if (consent !== 'configured' && consent.confirm.trim().toLowerCase() !== plan.hash) {
    throw configError(
      'Nothing was deleted: this is not what was confirmed. The list, the service, the places, the ways, a limit or ' +
        `another option differs. The hash of this is ${plan.hash}.`,
    );
  }
  if (list.counts.ids > 0 || purgePlan !== undefined) {
    const places = purgePlan?.places.map(({ name }) => name) ?? [];
    const suppressed = purgePlan?.settings.suppressionList.readLength();
    await ledger.begin({ ids: idsToRequest.length, places, requests: requestSettings !== undefined, suppressed });
  }

  // 3. Purge: the people leave all places, with everybody on the suppression list, whatever the service will answer.
  const purgeOutcome = purgePlan && (await purgePlaces(purgePlan));
  runtime.signal.throwIfAborted();

  // 4. Request, once all places are purged: the service then drops the profiles, by which rows that stayed are found.
  // A place with `unreached` counts as purged: only bytes and damaged files stay there.
  const isPurged = purgeOutcome?.places.every(({ removal }) => removal !== undefined) ?? true;
  let requestResult: RequestResult | undefined;
  if (isPurged && requestSettings !== undefined) {
    for (const { id, request } of plannedIds)
      if (request === 'done' || request === 'rejected') onDecided?.(id, request);
    const requestOptions = { ...runtime, ledger, settings: requestSettings, onDecided };
    requestResult = await sendRequests(idsToRequest, requestOptions);
  }
  runtime.signal.throwIfAborted();

  // 5. Report: what it says of people is in the ledger by now.
  const report = reportOf(plan, 'executed', runtime.clock.now() - beganAt, purgeOutcome, requestResult);
  const requestFailure = requestResult && failureOfRequests(plan, report, requestResult.stoppedBy);
  return { report, failure: joinFailures([...(purgeOutcome?.failures ?? []), requestFailure]) };
}

/** If the service rejects so many ids, and has never confirmed one, the ids are probably of another kind. */
const MIN_REJECTED = 10;

/**
 * The failure of the requests, by the first of these that holds: an answer stopped them; the field of the ids is probably
 * wrong; ids are undecided; ids were rejected, unless `onRejected` lets them pass. Undefined if none holds.
 */
function failureOfRequests(
  { options, ledger }: ErasurePlan,
  { done, rejected, undecided, rejected_codes, undecided_codes, places }: ErasureReport,
  stoppedBy: RequestResult['stoppedBy'],
): UserError | undefined {
  const rejectedCodes = codesText(rejected_codes);
  const undecidedCodes = codesText(undecided_codes);
  const doneText = `${withSeparators(done)} of ${formatCount(done + rejected + undecided, 'ID is', 'IDs are')} deleted`;
  const purgeOnlyHint = places.length > 0 ? ' To purge places without asking the service, give --purge-only.' : '';
  if (stoppedBy !== undefined) return configError(`${stoppedBy.message} ${doneText}.${purgeOnlyHint}`);
  const isFieldWrong = done === 0 && rejected >= MIN_REJECTED && !ledger.history.hasConfirmed;
  if (isFieldWrong && ledger.isKept) {
    return configError(
      `The service rejected ${undecided === 0 ? 'all ' : ''}${withSeparators(rejected)} IDs (${rejectedCodes}), and has confirmed none before: ` +
        'the field with the IDs is probably wrong.',
    );
  }
  if (undecided > 0) {
    const undecidedText = `${withSeparators(undecided)}${undecidedCodes && ` (${undecidedCodes})`}`;
    return transientError(
      `${doneText} at the service. Undecided: ${undecidedText}. Run again: it goes on with those.${purgeOnlyHint}`,
    );
  }
  // Without a ledger nobody knows whether the service has confirmed an id before.
  if (isFieldWrong) options.runtime.logger.warn('erase.rejected', 'All IDs were rejected: is the field right?');
  if (options.settings.onRejected === 'continue' || rejected === 0) return undefined;
  return configError(`The service rejected ${formatCount(rejected, 'ID')} (${rejectedCodes}).`, {
    exitCode: EXIT.guard,
  });
}

/** These failures as one, with the exit code of the most severe; undefined if there are none. */
function joinFailures(failures: readonly (UserError | undefined)[]): UserError | undefined {
  const sorted = failures.filter((failure) => failure !== undefined).sort(bySeverity);
  const [worst] = sorted;
  if (sorted.length < 2) return worst;
  return new UserError(worst.kind, sorted.map(({ message }) => message).join(' '), { exitCode: worst.exitCode });
}
