import { distance } from 'fastest-levenshtein';

/** A shorter name is a part of too many others. */
const MIN_PART_LENGTH = 4;

/**
 * The candidate that was probably meant. First comes one with the same letters, in any order, then one that contains
 * the name or is contained in it. Of the others the one with the fewest edits, `maxEdits` at most; by default a third of
 * the name's length. Only Latin letters and digits count.
 */
export function nearest(
  name: string,
  candidates: readonly string[],
  maxEdits = lettersAndDigits(name).length / 3,
): string | undefined {
  const text = lettersAndDigits(name);
  const ranked = candidates.map((candidate) => {
    const candidateText = lettersAndDigits(candidate);
    const hasSameLetters = text !== '' && sortedLetters(candidateText) === sortedLetters(text);
    const isLong = Math.min(candidateText.length, text.length) >= MIN_PART_LENGTH;
    const isPart = isLong && (candidateText.includes(text) || text.includes(candidateText));
    return { candidate, rank: hasSameLetters ? 1 : isPart ? 2 : 3, edits: distance(candidateText, text) };
  });
  const near = ranked.filter(({ rank, edits }) => rank < 3 || edits <= maxEdits);
  return near.sort((a, b) => a.rank - b.rank || a.edits - b.edits)[0]?.candidate;
}

const lettersAndDigits = (text: string) => text.toLowerCase().replaceAll(/[^a-z0-9]/g, '');

const sortedLetters = (text: string) => [...text].sort().join('');
