export const HOUR_MS = 3_600_000;
export const DAY_MS = 24 * HOUR_MS;

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: HOUR_MS } as const;
const DURATION = /^(\d+)(ms|s|m|h)$/;

/** Milliseconds of `30s`, `20m`, `1h`, `500ms`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  const match = DURATION.exec(text);
  if (!match) return undefined;
  return Number(match[1]) * UNITS[match[2] as keyof typeof UNITS];
}

/** A length of time for people: `850 ms`, `12 s`, `4 min 30 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1_000) return `${Math.round(ms)} ms`;
  const s = Math.round(ms / 1_000);
  if (s < 60) return `${s} s`;
  const minutes = Math.floor(s / 60);
  if (minutes < 60) return s % 60 === 0 ? `${minutes} min` : `${minutes} min ${s % 60} s`;
  const hours = Math.floor(minutes / 60);
  return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
}
