import { type Prepared, prepare } from './shapes.ts';

export const ROWS = 1_000_000;

/** Prepares a million rows as one day or as ten. */
export const prepared = (days: 1 | 10): Promise<Prepared> => prepare(`${days}x${ROWS / days}`);
