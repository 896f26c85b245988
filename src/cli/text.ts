/** `1 row`, `2,516 rows`: a number of things for people. */
export const count = (n: number, one: string, many = `${one}s`): string =>
  `${n.toLocaleString('en-US')} ${n === 1 ? one : many}`;

/** Megabytes of 1,000,000 bytes with one decimal: `12.3 MB`. */
export const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;
