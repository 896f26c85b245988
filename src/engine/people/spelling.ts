import { nfc } from '../../base/text.ts';

// External ids that are probably the same, but spelt differently.

/** All but letters, their marks and digits. */
const SIGNS = '[^\\p{L}\\p{M}\\p{N}]+';

/** In what two such ids may differ, and what takes the difference away, in this order. */
const FOLDS: readonly (readonly [difference: string, fold: (text: string) => string])[] = [
  ['its Unicode form', nfc],
  ['blanks, hyphens or other signs', (text) => text.replace(new RegExp(SIGNS, 'gu'), '')],
  ['capitals', (text) => text.toLowerCase()],
  ['leading zeros', (text) => text.replace(/^0+/, '')],
];

const foldedBy = (folds: typeof FOLDS, text: string): string => folds.reduce((folded, [, fold]) => fold(folded), text);

/** A spelling that is equal for such ids. */
export const foldedSpelling = (text: string): string => foldedBy(FOLDS, text);

/** Spellings under which an id may have been hashed: without some of these differences, trimmed, and in capitals. */
export function usualSpellings(id: string): string[] {
  const spellings = new Set([id, id.trim()].flatMap((text) => [text, text.toUpperCase()]));
  for (const [, fold] of FOLDS) for (const spelling of [...spellings]) spellings.add(fold(spelling));
  return [...spellings];
}

/** SQL of `foldedSpelling`. */
export const foldedSql = (text: string): string =>
  `ltrim(lower(regexp_replace(nfc_normalize(${text}), '${SIGNS}', '', 'g')), '0')`;

/** In what two such ids differ: without that fold they are not equal. Empty for an id and a hash. */
function differencesOf(id: string, similarId: string): string[] {
  if (foldedSpelling(id) !== foldedSpelling(similarId)) return [];
  return FOLDS.flatMap(([difference], i) => {
    const otherFolds = FOLDS.toSpliced(i, 1);
    return foldedBy(otherFolds, id) === foldedBy(otherFolds, similarId) ? [] : [difference];
  });
}

/** How an id differs from the nearest of such ids, as the end of "differs only in …". A hash is the farthest. */
export function differenceText(id: string, similarIds: readonly string[]): string {
  const differences = similarIds.map((similarId) => differencesOf(id, similarId)).filter(({ length }) => length > 0);
  const [nearest = ['its spelling']] = differences.sort((a, b) => a.length - b.length);
  return nearest.join(' and ');
}
