import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { cellFits, classify, TYPES, typeOf } from '../../../src/types/index.ts';
import { COLUMN_TYPES, type ColumnType } from '../../../src/types/type.ts';
import { Zone } from '../../../src/types/zone.ts';
import { EVIDENCE_BITS, type EvidenceName, evidenceNames, jsonBound } from '../../support/evidence.ts';

interface CellVector {
  readonly cell: string;
  readonly timezone?: string;
  readonly evidence: readonly EvidenceName[];
  readonly type: ColumnType | null;
  readonly json: Partial<Record<ColumnType, string>>;
}
interface ColumnVector {
  readonly cells: readonly string[];
  readonly timezone?: string;
  readonly type: ColumnType | null;
}

const read = (name: string) =>
  JSON.parse(readFileSync(new URL(`../../../spec/vectors/${name}`, import.meta.url), 'utf8'));
const cells: CellVector[] = read('cells.json');
const columns: ColumnVector[] = read('columns.json');
const zoneOf = (vector: { readonly timezone?: string }) =>
  vector.timezone === undefined ? undefined : new Zone(vector.timezone);
const show = (cell: string, zone?: string) => JSON.stringify(cell) + (zone === undefined ? '' : ` in ${zone}`);

/** Digits, dots and minus signs around the cell must never be read. */
const embed = (cell: string) => new TextEncoder().encode(`-9.${cell}.9-9:99Z]"`);
const START = 3;
const AFTER = 10;

const evidenceOf = (cell: string, zone: Zone | undefined) => {
  const bytes = embed(cell);
  return classify(bytes, START, bytes.length - AFTER, zone);
};

describe('a test vector', () => {
  for (const vector of cells) {
    it(`${show(vector.cell, vector.timezone)} gives ${vector.evidence.join(' ')}`, () => {
      const zone = zoneOf(vector);
      const evidence = evidenceOf(vector.cell, zone);
      expect(evidenceNames(evidence)).toEqual([...vector.evidence]);
      expect(typeOf(evidence, zone !== undefined) ?? null).toBe(vector.type);
      const bytes = embed(vector.cell);
      const out = new Uint8Array(jsonBound(bytes.length));
      const json: Partial<Record<ColumnType, string>> = {};
      for (const type of COLUMN_TYPES) {
        if (!cellFits(type, bytes, START, bytes.length - AFTER, zone)) continue;
        const end = TYPES[type].writeJson(bytes, START, bytes.length - AFTER, out, 0, zone);
        json[type] = new TextDecoder('utf-8', { ignoreBOM: true }).decode(out.subarray(0, end));
      }
      const { string, ...others } = json;
      expect(JSON.parse(string ?? '')).toBe(vector.cell);
      expect(others).toEqual(vector.json);
    });
  }

  it('is absent in every type if it is empty [R29]', () => {
    for (const type of COLUMN_TYPES) {
      const out = new Uint8Array(8);
      expect(cellFits(type, out, 3, 3)).toBe(true);
      const end = TYPES[type].writeJson(out, 3, 3, out, 0);
      expect(new TextDecoder().decode(out.subarray(0, end))).toBe('null');
    }
  });
});

describe('a column', () => {
  for (const vector of columns) {
    it(`of ${vector.cells.map((cell) => show(cell)).join(' ')} is ${vector.type}, in either order`, () => {
      const zone = zoneOf(vector);
      for (const order of [vector.cells, [...vector.cells].reverse()]) {
        const evidence = order.reduce((all, cell) => all | evidenceOf(cell, zone), 0);
        expect(typeOf(evidence, zone !== undefined) ?? null).toBe(vector.type);
      }
    });
  }
});

describe('the test vectors', () => {
  it('cover every bit of evidence and every type [R30]', () => {
    const bits = new Set(cells.flatMap((vector) => vector.evidence));
    expect([...bits].sort()).toEqual(Object.keys(EVIDENCE_BITS).sort());
    const types = new Set(columns.map((vector) => vector.type));
    expect(COLUMN_TYPES.filter((type) => !types.has(type))).toEqual([]);
  });
});
