import { formatDuration } from '../../base/durations.ts';

/** How long the service is waited for. */
export interface WaitLimits {
  /** Maximum of one wait that the service asks for (ms); a longer one is refused. */
  readonly maxWaitMs?: number | undefined;
  /** Time (ms since 1970) at which no such wait may still last: the platform does not wait for longer. */
  readonly waitsEndAt?: number | undefined;
}

/** Why a wait from `now` until `at` is too long, and what to do: the end of a sentence. Undefined if it is allowed. */
export function waitProblem(at: number, now: number, { maxWaitMs, waitsEndAt }: WaitLimits): string | undefined {
  if (waitsEndAt !== undefined && at > Math.max(now, waitsEndAt)) {
    return 'longer than the platform waits. Run again then.';
  }
  if (maxWaitMs === undefined || at - now <= maxWaitMs) return undefined;
  const most = `longer than the ${formatDuration(maxWaitMs)} that it is waited for`;
  // Only a discovery has an end of its waits: it keeps nothing, and the platform does not know the option.
  if (waitsEndAt !== undefined) return `${most}. Run again then.`;
  return `${most} (--max-wait). What was loaded stays; run again then.`;
}
