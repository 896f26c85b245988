/** `1 row`, `2,516 rows`: a count with its noun in the right number, for messages. */
export const count = (n: number, noun: string, plural = `${noun}s`): string =>
  `${withSeparators(n)} ${n === 1 ? noun : plural}`;

/** A whole number with separators: `2,516`. `toLocaleString` takes 12 ms at its first call. */
export const withSeparators = (n: number): string => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

/** A count with its noun, without separators, for numbers to compare: `2516 rows`. */
export const plainCount = (n: number, noun: string, plural = `${noun}s`): string => `${n} ${n === 1 ? noun : plural}`;

/** Megabytes of 1,000,000 bytes with one decimal, or a smaller unit: `12.3 MB`, `40 kB`, `499 B`. */
export const formatBytes = (bytes: number): string => {
  if (bytes < 1e3) return `${bytes} B`;
  return bytes < 1e5 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
};
