import type { ColumnType } from '../../src/cells/types/codec.ts';
import type { CellForms } from '../../src/cells/types/forms.ts';
import * as bits from '../../src/cells/types/forms.ts';
import { cellFits, TYPES } from '../../src/cells/types/types.ts';
import type { Zone } from '../../src/cells/types/zone.ts';

export type FormName = keyof typeof bits;

/** Every bit by name, as the vectors under `spec/` write them, the lowest first. */
export const FORM_BITS = Object.fromEntries(Object.entries(bits).sort(([, a], [, b]) => a - b)) as Readonly<
  Record<FormName, number>
>;

/** The names of the bits that are set, in their order. */
export function formNames(forms: CellForms): FormName[] {
  const names = Object.keys(FORM_BITS) as FormName[];
  return names.filter((name) => (forms & FORM_BITS[name]) !== 0);
}

/** The bytes for which a codec's `writeJson` must be given room. */
export const jsonBound = (length: number): number => length * 8 + 40;

const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export const fitsBytes = (type: ColumnType, cell: string, zone: Zone | undefined): boolean => {
  const bytes = encoder.encode(`#${cell}#`);
  return cellFits(type, bytes, 1, bytes.length - 1, zone);
};

export const jsonOf = (type: ColumnType, cell: string, zone: Zone | undefined): string => {
  const bytes = encoder.encode(`#${cell}#`);
  const out = new Uint8Array(3 + jsonBound(bytes.length - 2));
  const end = TYPES[type].writeJson(bytes, 1, bytes.length - 1, out, 3, zone);
  return decoder.decode(out.subarray(3, end));
};
