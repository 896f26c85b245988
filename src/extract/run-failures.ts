// Why a run fails, although some of its days are loaded.

import { type Day, formatDays } from '../base/days.ts';
import { configError, EXIT, severityOf, transientError, type UserError } from '../base/errors.ts';
import { plainCount } from '../base/quantities.ts';
import type { UnprovenDay } from './download/day-download.ts';
import type { RunPlan } from './which-days.ts';

/** The most severe of these errors; the first of those. */
export const mostSevere = (errors: readonly (UserError | undefined)[]): UserError | undefined =>
  errors.filter((error) => error !== undefined).sort((a, b) => severityOf(b.exitCode) - severityOf(a.exitCode))[0];

/** The failure for days without data of which nobody knows whether they have rows; undefined if there are none. */
export function unprovenError(unprovenDays: readonly UnprovenDay[]): UserError | undefined {
  if (unprovenDays.length === 0) return undefined;
  const days = formatDays(unprovenDays.map(({ day }) => day));
  return transientError(
    `${days}: ${unprovenDays[0].noDownload.clause} before the service exported any day as CSV. ` +
      'So it is not known whether there are no events: nothing was stored of them, run again later.',
  );
}

/** The failure for gaps (exit 4); undefined if there are none. */
export function gapError(days: readonly Day[], mode: RunPlan['mode']): UserError | undefined {
  if (days.length === 0) return undefined;
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
