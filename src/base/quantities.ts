// Counts, shares, sizes and lengths of time, as people read and write them.

import { HOUR_MS } from './clock.ts';

/** A whole number with separators: `2,516`. `toLocaleString` takes 12 ms at its first call. */
export const withSeparators = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

/** `1 row`, `2,516 rows`: a count with its noun in the right number, for messages. */
export const formatCount = (n: number, noun: string, plural = `${noun}s`): string =>
  `${withSeparators(n)} ${n === 1 ? noun : plural}`;
/** The same without separators: `2516 rows`, beside another number to compare. */
export const unseparatedCount = (n: number, noun: string, plural = `${noun}s`): string =>
  `${n} ${n === 1 ? noun : plural}`;

/** Megabytes of 1,000,000 bytes with one decimal, or a smaller unit: `12.3 MB`, `40 kB`, `499 B`. */
export const formatBytes = (bytes: number): string => {
  if (bytes < 1e3) return `${bytes} B`;
  return bytes < 1e5 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
};

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

/** A part as `12.3%`: 0% means none, and 100% all. */
export function formatPercent(part: number, whole: number): string {
  if (part === 0 || whole === 0) return '0%';
  if (part === whole) return '100%';
  return `${Math.min(99.9, Math.max(0.1, (part / whole) * 100)).toFixed(1)}%`;
}
