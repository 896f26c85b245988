import { distance } from 'fastest-levenshtein';

const flat = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

/**
 * The candidate that was probably meant. The best has the same letters, in any order. The next best contains the name,
 * or is contained in it. The last is the fewest edits away, `farthest` at most. Only Latin letters and digits count.
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
      const flatCandidate = flat(candidate);
      const isPart =
        Math.min(flatCandidate.length, text.length) > 3 &&
        (flatCandidate.includes(text) || text.includes(flatCandidate));
      const likeness = text === '' ? 0 : sorted(flatCandidate) === letters ? 2 : isPart ? 1 : 0;
      return { candidate, likeness, edits: distance(flatCandidate, text) };
    })
    .filter(({ likeness, edits }) => likeness > 0 || edits <= farthest)
    .sort((a, b) => b.likeness - a.likeness || a.edits - b.edits);
  return ranked[0]?.candidate;
}

const sorted = (text: string) => [...text].sort().join('');
