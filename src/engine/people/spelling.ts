// External ids that are probably the same, but spelt differently. They differ in blanks at the edges, capitals, leading
// zeros or Unicode form.

/** For JavaScript, and for RE2 of DuckDB, whose `\s` lacks `\v`. */
const BLANK_EDGES = '^[\\s\\v\\p{Z}\\p{Cf}]+|[\\s\\v\\p{Z}\\p{Cf}]+$';
const EDGES = new RegExp(BLANK_EDGES, 'gu');

const trimmed = (text: string): string => text.normalize('NFC').replace(EDGES, '');

/** A spelling that is equal for such ids. */
export const foldedSpelling = (text: string): string => trimmed(text).toLowerCase().replace(/^0+/, '');

/** SQL of the same spelling. */
export const foldedSql = (text: string): string =>
  `ltrim(lower(regexp_replace(nfc_normalize(${text}), '${BLANK_EDGES}', '', 'g')), '0')`;

/** How two ids of the same folded spelling differ, as the end of "differs only in …". */
export function differenceOf(id: string, other: string): string {
  const steps: readonly (readonly [string, (text: string) => string])[] = [
    ['its Unicode form', (text) => text.normalize('NFC')],
    ['blanks at its edges', trimmed],
    ['capitals', (text) => trimmed(text).toLowerCase()],
    ['leading zeros', (text) => trimmed(text).replace(/^0+/, '')],
  ];
  return steps.find(([, respelt]) => respelt(id) === respelt(other))?.[0] ?? 'its spelling';
}
