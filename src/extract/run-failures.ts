import { type Day, formatDays } from '../base/days.ts';
import { configError, EXIT, severityOf, transientError, type UserError } from '../base/errors.ts';
import type { Logger } from '../base/log.ts';
import { plainCount } from '../base/quantities.ts';
import type { FailedDay, UnprovenDay } from './download/day-download.ts';
import type { RunPlan } from './which-days.ts';

/** Failures of the service after which a run gives up: it is probably down. */
const MAX_SERVICE_FAILURES = 3;

/**
 * Why a run fails, by the days that it could not load. It fails with one of these, and the others of 1 are logged:
 *
 *   1. gaps, as one failure, and each day that is over and failed: the most severe, and the first of those
 *   2. unproven days
 *   3. the first day that failed and is not over, if no day was loaded
 */
export class RunFailures {
  #gapError: UserError | undefined;
  readonly #dayErrors: UserError[] = [];
  readonly #unprovenDays: UnprovenDay[] = [];
  #openDayError: UserError | undefined;

  /** Takes all gaps so far. */
  setGaps(days: readonly Day[], mode: RunPlan['mode']): void {
    this.#gapError = gapError(days, mode);
  }

  addFailed({ error, isOver }: FailedDay): void {
    if (isOver) this.#dayErrors.push(error);
    else this.#openDayError ??= error;
  }

  addUnproven(unprovenDay: UnprovenDay): void {
    this.#unprovenDays.push(unprovenDay);
  }

  /** A body that can never be read says nothing of other days, once the service has exported one. */
  isServiceDown(hasExportedDay: boolean): boolean {
    const serviceErrors = this.#dayErrors.filter(({ kind }) => kind === 'transient' || !hasExportedDay);
    return serviceErrors.length >= MAX_SERVICE_FAILURES;
  }

  get #certainErrors(): readonly UserError[] {
    return this.#gapError === undefined ? this.#dayErrors : [this.#gapError, ...this.#dayErrors];
  }

  /** The failure of the run by 1: whatever later days bring, it fails. */
  get certain(): UserError | undefined {
    return this.#certainErrors.toSorted((a, b) => severityOf(b.exitCode) - severityOf(a.exitCode))[0];
  }

  /** The failure of the run once all days are known. */
  final(hasLoaded: boolean): UserError | undefined {
    return this.certain ?? unprovenError(this.#unprovenDays) ?? (hasLoaded ? undefined : this.#openDayError);
  }

  /** Logs the failures of 1, but for the error that the caller reports. */
  logOthers(reported: unknown, logger: Logger): void {
    for (const error of this.#certainErrors)
      if (error !== reported) logger.error('day.failed', error.message, { ...error.where });
  }
}

function unprovenError(unprovenDays: readonly UnprovenDay[]): UserError | undefined {
  if (unprovenDays.length === 0) return undefined;
  const days = formatDays(unprovenDays.map(({ day }) => day));
  return transientError(
    `${days}: ${unprovenDays[0].noDownload.clause} before the service exported any day as CSV. ` +
      'So it is not known whether there are no events: nothing was stored of them, run again later.',
  );
}

/** The failure for gaps (exit 4). */
function gapError(days: readonly Day[], mode: RunPlan['mode']): UserError {
  const statement = `${plainCount(days.length, 'day')} can no longer be exported`;
  const { lost: exitCode } = EXIT;
  if (mode === 'named')
    return configError(`${statement}: ${formatDays(days)}. Name later days with --from and --to.`, { exitCode });
  const lossSentence = `${statement} and would be lost: ${formatDays(days)}.`;
  const message =
    `${lossSentence} Load a CSV file of each from the provider: load … --day ${days[0]}. ` +
    'Or set on_gap to warn to record the gap and go on.';
  const platformMessage = `${lossSentence} Set on_gap to warn to record the gap and go on.`;
  return configError(message, { exitCode, platformMessage });
}
