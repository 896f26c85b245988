import { type Day, formatDays } from '../base/days.ts';
import { bySeverity, configError, EXIT, transientError, type UserError } from '../base/errors.ts';
import { unseparatedCount } from '../base/quantities.ts';
import type { EmptyAnswerDay, FailedDay } from './download/day-download.ts';
import type { RunPlan } from './which-days.ts';

/** Failures of the service after which a run gives up. */
const MAX_SERVICE_FAILURES = 3;

/** Why a run fails, although some of its days are loaded. Each failure is one value, which is thrown or logged. */
export class RunFailures {
  #gapError: UserError | undefined;
  /** Of days that are over. */
  readonly #dayErrors: UserError[] = [];
  readonly #emptyAnswerDays: Day[] = [];
  #emptyAnswerError: UserError | undefined;
  /** Of the first day that is not over. */
  #openDayError: UserError | undefined;

  /** Takes all gaps so far. */
  setGaps(gaps: readonly Day[], mode: RunPlan['mode']): void {
    this.#gapError = gapError(gaps, mode);
  }

  addEmptyAnswerDay({ day, emptyAnswer }: EmptyAnswerDay): void {
    this.#emptyAnswerDays.push(day);
    this.#emptyAnswerError = transientError(
      `${formatDays(this.#emptyAnswerDays)}: ${emptyAnswer.clause} before the service exported any day as CSV. ` +
        'So it is not known whether there are no events: nothing was stored of them, run again later.',
    );
  }

  addFailedDay({ error, isOver }: FailedDay): void {
    if (isOver) this.#dayErrors.push(error);
    else this.#openDayError ??= error;
  }

  /** True if the service is probably down. A body that can never be read says nothing of it, once it exported a day. */
  isServiceDown(hasExportedDay: boolean): boolean {
    const serviceErrors = this.#dayErrors.filter(({ kind }) => kind === 'transient' || !hasExportedDay);
    return serviceErrors.length >= MAX_SERVICE_FAILURES;
  }

  /** Why the run fails, whatever the days to come bring: the most severe failure, the first of those. */
  get certainError(): UserError | undefined {
    const errors = [this.#gapError, ...this.#dayErrors].filter((error) => error !== undefined);
    return errors.sort(bySeverity)[0];
  }

  /** Why the run fails, once all days are known. */
  errorAtEnd(hasLoaded: boolean): UserError | undefined {
    return this.certainError ?? this.#emptyAnswerError ?? (hasLoaded ? undefined : this.#openDayError);
  }

  /** The failures but for the one that the caller reports. That of a day that is not over was a warning. */
  otherErrors(reported: unknown): readonly UserError[] {
    const errors = [this.#gapError, ...this.#dayErrors, this.#emptyAnswerError].filter((error) => error !== undefined);
    return errors.filter((error) => error !== reported);
  }
}

/** The failure for gaps (exit 4). */
function gapError(days: readonly Day[], mode: RunPlan['mode']): UserError {
  const statement = `${unseparatedCount(days.length, 'day')} can no longer be exported`;
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
