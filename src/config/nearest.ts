import { distance } from 'fastest-levenshtein';

export const flat = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/**
 * The known name that was probably meant: one that holds the other, or else the fewest edits away, at most `farthest`.
 * Only Latin letters and digits count.
 */
export function nearest(
  name: string,
  known: readonly string[],
  farthest = Number.POSITIVE_INFINITY,
): string | undefined {
  const given = flat(name);
  const ranked = known
    .map((candidate) => {
      const edits = distance(flat(candidate), given);
      const isPart = given !== '' && (flat(candidate).includes(given) || given.includes(flat(candidate)));
      return { candidate, edits, isPart };
    })
    .filter(({ edits, isPart }) => isPart || edits <= farthest)
    .sort((a, b) => Number(b.isPart) - Number(a.isPart) || a.edits - b.edits);
  return ranked[0]?.candidate;
}
