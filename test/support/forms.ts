import { CellClassifier, type ColumnType, codecOf, fits } from '../../src/cells/types/column-types.ts';
import type { CellForms } from '../../src/cells/types/forms.ts';
import * as forms from '../../src/cells/types/forms.ts';
import type { Zone } from '../../src/cells/types/zone.ts';

const { listOf, ...ownBits } = forms;
const { LONG, LONG_WIDE, DOUBLE } = ownBits;
const lists = { LIST_LONG: listOf(LONG), LIST_LONG_WIDE: listOf(LONG_WIDE), LIST_DOUBLE: listOf(DOUBLE) };
const bits = { ...ownBits, ...lists };

export type FormName = keyof typeof bits;

/** Every bit by name, as the vectors under `spec/` write them, the lowest first. */
export const FORM_BITS = Object.fromEntries(Object.entries(bits).sort(([, a], [, b]) => a - b)) as Readonly<
  Record<FormName, number>
>;

/** The names of the bits that are set, in their order. */
export function formNames(set: CellForms): FormName[] {
  const names = Object.keys(FORM_BITS) as FormName[];
  return names.filter((name) => (set & FORM_BITS[name]) !== 0);
}

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Digits, dots, minus signs and brackets around a cell must never be read. */
const [BEFORE, AFTER] = ['-9.', '.9-9:99Z]"'];

/** The bytes of a cell among others, with its start and end. */
function embedded(cell: string): [bytes: Uint8Array, start: number, end: number] {
  const bytes = encoder.encode(`${BEFORE}${cell}${AFTER}`);
  return [bytes, BEFORE.length, bytes.length - AFTER.length];
}

export const formsOfCell = (cell: string, zone: Zone | undefined): CellForms =>
  new CellClassifier().formsOf(...embedded(cell), zone);

export const fitsBytes = (type: ColumnType, cell: string, zone: Zone | undefined): boolean =>
  fits(codecOf(type, zone), formsOfCell(cell, zone));

/** The JSON of a cell that is absent or fits. */
export function jsonOf(type: ColumnType, cell: string, zone: Zone | undefined): string {
  if (cell === 'null' && type !== 'string') return 'null';
  const [bytes, start, end] = embedded(cell);
  const out = new Uint8Array(3 + (end - start) * 8 + 40);
  return decoder.decode(out.subarray(3, codecOf(type, zone).writeJson(bytes, start, end, out, 3)));
}
