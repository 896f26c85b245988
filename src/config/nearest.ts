import { distance } from 'fastest-levenshtein';

export const flat = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/**
 * The known name that was probably meant: one of the same letters in another order, or else one that holds the other, or
 * else the fewest edits away, at most `farthest`. Only Latin letters and digits count.
 */
export function nearest(
  name: string,
  known: readonly string[],
  farthest = Number.POSITIVE_INFINITY,
): string | undefined {
  const given = flat(name);
  const letters = sorted(given);
  const ranked = known
    .map((candidate) => {
      const edits = distance(flat(candidate), given);
      const isPart = given !== '' && (flat(candidate).includes(given) || given.includes(flat(candidate)));
      const isSwapped = given !== '' && sorted(flat(candidate)) === letters;
      return { candidate, edits, isPart, isSwapped };
    })
    .filter(({ edits, isPart, isSwapped }) => isSwapped || isPart || edits <= farthest)
    .sort(
      (a, b) => Number(b.isSwapped) - Number(a.isSwapped) || Number(b.isPart) - Number(a.isPart) || a.edits - b.edits,
    );
  return ranked[0]?.candidate;
}

const sorted = (letters: string) => [...letters].sort().join('');
