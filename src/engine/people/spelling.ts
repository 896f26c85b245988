import { nfc } from '../../base/text.ts';

// External ids that are probably the same, but spelt differently.

const BLANK_EDGES = '^[\\s\\v\\p{Z}\\p{Cf}]+|[\\s\\v\\p{Z}\\p{Cf}]+$';
const EDGES = new RegExp(BLANK_EDGES, 'gu');
/** All but letters, their marks and digits. */
const SIGNS = '[^\\p{L}\\p{M}\\p{N}]+';
/** With `$1` as its replacement it removes the signs, but no blanks at the edges. */
const INNER_SIGNS = new RegExp(`(${BLANK_EDGES})|${SIGNS}`, 'gu');

/** In what two such ids may differ, and what takes the difference away, in this order. */
const FOLDS: readonly (readonly [difference: string, fold: (text: string) => string])[] = [
  ['its Unicode form', nfc],
  ['blanks at its edges', (text) => text.replace(EDGES, '')],
  ['hyphens, blanks or other signs', (text) => text.replace(INNER_SIGNS, '$1')],
  ['capitals', (text) => text.toLowerCase()],
  ['leading zeros', (text) => text.replace(/^0+/, '')],
];

const foldedBy = (folds: typeof FOLDS, text: string): string => folds.reduce((folded, [, fold]) => fold(folded), text);

/** A spelling that is equal for such ids. */
export const foldedSpelling = (text: string): string => foldedBy(FOLDS, text);

/** SQL of `foldedSpelling`. */
export const foldedSql = (text: string): string =>
  `ltrim(lower(regexp_replace(nfc_normalize(${text}), '${SIGNS}', '', 'g')), '0')`;

/** How two such ids differ, as the end of "differs only in …": without these folds they are not equal. */
export function differenceText(id: string, similarId: string): string {
  const differences = FOLDS.flatMap(([difference], i) => {
    const otherFolds = FOLDS.toSpliced(i, 1);
    return foldedBy(otherFolds, id) === foldedBy(otherFolds, similarId) ? [] : [difference];
  });
  return differences.join(' and ');
}
