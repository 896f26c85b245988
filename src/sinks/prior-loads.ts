import { configFailure, type Failure } from '../base/errors.ts';
/** The failure for a configured time zone that is not that of the target's first load. `what`: `file` or `folder`. */
export function otherTimezone(
  place: string,
  what: string,
  { wanted, stored }: { readonly wanted: string | null; readonly stored: string | null },
): Failure {
  return configFailure(
    `timezone is ${wanted ?? 'not set'}, but ${place} was loaded with ${stored ?? 'none'}: keep it, or load into another ${what}.`,
  );
}
