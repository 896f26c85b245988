/** `1 row`, `2,516 rows`: a count with its noun in the right number, for messages. */
export const count = (n: number, one: string, many = `${one}s`): string =>
  // `toLocaleString` takes 12 ms at its first call.
  `${String(n).replace(/\B(?=(\d{3})+$)/g, ',')} ${n === 1 ? one : many}`;

/** A count with its noun, without separators, for numbers to compare or from a database: `2516 rows`. */
export const plainCount = (n: unknown, one: string, many = `${one}s`): string =>
  `${String(n)} ${Number(n) === 1 ? one : many}`;

/** Megabytes of 1,000,000 bytes with one decimal, and kilobytes where that would say little: `12.3 MB`, `40 kB`. */
export const formatBytes = (bytes: number): string =>
  bytes < 1e5 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
