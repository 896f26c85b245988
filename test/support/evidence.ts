import * as bits from '../../src/types/evidence.ts';
import type { Evidence } from '../../src/types/type.ts';

/** Every bit by name, as the vectors under `spec/` write them, the lowest first. */
export const EVIDENCE_BITS = Object.fromEntries(Object.entries(bits).sort(([, a], [, b]) => a - b)) as typeof bits;

export type EvidenceName = keyof typeof EVIDENCE_BITS;

/** The names of the bits that are set, in their order. */
export function evidenceNames(evidence: Evidence): EvidenceName[] {
  const names = Object.keys(EVIDENCE_BITS) as EvidenceName[];
  return names.filter((name) => (evidence & EVIDENCE_BITS[name]) !== 0);
}

/** The bytes for which a codec's `writeJson` must be given room. */
export const jsonBound = (length: number): number => length * 8 + 40;
