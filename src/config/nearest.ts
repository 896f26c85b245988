import { distance } from 'fastest-levenshtein';

const flat = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/**
 * The candidate that was probably meant: one of the same letters in another order. Else one that holds the other, or
 * that the name holds. Else the one fewest edits away, at most `farthest`. Only Latin letters and digits count.
 */
export function nearest(
  name: string,
  candidates: readonly string[],
  farthest = Number.POSITIVE_INFINITY,
): string | undefined {
  const text = flat(name);
  const letters = sorted(text);
  const ranked = candidates
    .map((candidate) => {
      const other = flat(candidate);
      const isPart = Math.min(other.length, text.length) > 3 && (other.includes(text) || text.includes(other));
      const likeness = text === '' ? 0 : sorted(other) === letters ? 2 : isPart ? 1 : 0;
      return { candidate, likeness, edits: distance(other, text) };
    })
    .filter(({ likeness, edits }) => likeness > 0 || edits <= farthest)
    .sort((a, b) => b.likeness - a.likeness || a.edits - b.edits);
  return ranked[0]?.candidate;
}

const sorted = (text: string) => [...text].sort().join('');
