import { distance } from 'fastest-levenshtein';

const flat = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/**
 * The known name that was probably meant. The first that exists: one of the same letters in another order, one that
 * holds the other, the one fewest edits away (at most `farthest`). Only Latin letters and digits count.
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
      const own = flat(candidate);
      const isPart = Math.min(own.length, given.length) > 3 && (own.includes(given) || given.includes(own));
      const likeness = given === '' ? 0 : sorted(own) === letters ? 2 : isPart ? 1 : 0;
      return { candidate, likeness, edits: distance(own, given) };
    })
    .filter(({ likeness, edits }) => likeness > 0 || edits <= farthest)
    .sort((a, b) => b.likeness - a.likeness || a.edits - b.edits);
  return ranked[0]?.candidate;
}

const sorted = (letters: string) => [...letters].sort().join('');
