import { type Rewrite, type RewriteOptions, rewriteDuckDb } from './rewrite.ts';

/** Gives back the space of rows that are gone, by writing the file anew. Throws Failure. */
export function compactDuckDb(options: Omit<RewriteOptions, 'leaveOut'>): Promise<Rewrite> {
  return rewriteDuckDb(options);
}
