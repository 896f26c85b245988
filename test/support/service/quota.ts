import { HOUR_MS } from '../../../src/base/durations.ts';
import { ExportQuota, type ExportQuotaOptions } from '../../../src/service/quota/quota.ts';
import { EMPTY_STATE, type QuotaState, type Slot } from '../../../src/service/quota/state.ts';

export const NOW = Date.UTC(2026, 0, 20, 3);
export const LIMITS = { maxConcurrentExports: 5, exportsPerHour: 100 };
export const MINUTE = 60_000;

/** The place of an export under way. */
export const slot = (n: number, more: Partial<Slot> = {}): Slot => ({
  n,
  owner: { pid: 1, host: 'h', space: 's', started: '1' },
  run: 'r',
  lease: NOW + HOUR_MS,
  answered: true,
  ...more,
});
/** Exports sent, all at one instant. */
export const sent = (count: number, at = NOW - MINUTE) => Array.from({ length: count }, (_, i) => ({ n: i + 1, at }));
/** A state with these parts. */
export const state = (more: Partial<QuotaState>): QuotaState => ({
  ...EMPTY_STATE,
  next: (more.sent?.length ?? 0) + 1,
  unreportedAt: NOW - MINUTE,
  ...more,
});
/** The last report of the service of what is left. */
export const report = (remaining: number, resetAt: number | undefined, more = {}) => {
  const rest = { remaining, at: NOW - MINUTE, lastSent: 1_000, unanswered: 0, ...more };
  return resetAt === undefined ? rest : { ...rest, resetAt };
};

/** A quota of one service with these limits. */
export const openTestQuota = (
  options: Pick<ExportQuotaOptions, 'clock' | 'logger' | 'stateRoot'> & Partial<ExportQuotaOptions>,
): ExportQuota =>
  new ExportQuota({
    baseUrl: 'https://api.example',
    serviceId: 'svc-1',
    ...LIMITS,
    random: () => 0,
    ...options,
  });
