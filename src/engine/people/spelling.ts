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

/** SQL of `foldedSpelling`. */
export const foldedSql = (text: string): string =>
  `ltrim(lower(regexp_replace(nfc_normalize(${text}), '${SIGNS}', '', 'g')), '0')`;

/** In what two such ids differ: without that fold they are not equal. */
const differencesOf = (id: string, similarId: string): string[] =>
  FOLDS.flatMap(([difference], i) => {
    const otherFolds = FOLDS.toSpliced(i, 1);
    return foldedBy(otherFolds, id) === foldedBy(otherFolds, similarId) ? [] : [difference];
  });

/** How two such ids differ, as the end of "differs only in …". */
export const differenceText = (id: string, similarId: string): string =>
  differencesOf(id, similarId).join(' and ') || 'its spelling';

/** Keeps an id that is similar to `id`, unless one is there that differs in no more: it may be of somebody else. */
export function keepNearest(similarIdById: Map<string, string>, id: string, similarId: string): void {
  const nearestId = similarIdById.get(id);
  const isNearer = nearestId === undefined || differencesOf(id, similarId).length < differencesOf(id, nearestId).length;
  if (isNearer) similarIdById.set(id, similarId);
}
