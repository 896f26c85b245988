import { distance } from 'fastest-levenshtein';

/** How alike two names are, beside the number of edits between them. */
const LIKENESS = { none: 0, isPart: 1, sameLetters: 2 };
/** A shorter name is a part of too many others. */
const MIN_PART_LENGTH = 4;

/**
 * The candidate that was probably meant. First comes one with the same letters, in any order, then one that contains
 * the name or is contained in it. Of the others the one with the fewest edits, `maxEdits` at most; by default a third of
 * the name's length. Only Latin letters and digits count.
 */
export function nearest(name: string, candidates: readonly string[], maxEdits = name.length / 3): string | undefined {
  const text = lettersAndDigits(name);
  const ranked = candidates
    .map((candidate) => {
      const candidateText = lettersAndDigits(candidate);
      return { candidate, likeness: likenessOf(candidateText, text), edits: distance(candidateText, text) };
    })
    .filter(({ likeness, edits }) => likeness > LIKENESS.none || edits <= maxEdits)
    .sort((a, b) => b.likeness - a.likeness || a.edits - b.edits);
  return ranked[0]?.candidate;
}

function likenessOf(candidate: string, name: string): number {
  if (name === '') return LIKENESS.none;
  if (sortedLetters(candidate) === sortedLetters(name)) return LIKENESS.sameLetters;
  const isLong = Math.min(candidate.length, name.length) >= MIN_PART_LENGTH;
  return isLong && (candidate.includes(name) || name.includes(candidate)) ? LIKENESS.isPart : LIKENESS.none;
}

const lettersAndDigits = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

const sortedLetters = (text: string) => [...text].sort().join('');
