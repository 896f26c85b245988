import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { COLUMN_TYPES, type ColumnType } from '../../../src/cells/types/codec.ts';
import { cellFits, formsOf, TYPES, typeOf } from '../../../src/cells/types/types.ts';
import { Zone } from '../../../src/cells/types/zone.ts';
import { FORM_BITS, formNames, jsonBound } from '../../support/forms.ts';
import { type CellVector, type ColumnVector, VECTORS, VECTORS_PATH } from '../../support/vectors.ts';

const zoneOf = ({ timezone }: { readonly timezone?: string }) =>
  timezone === undefined ? undefined : new Zone(timezone);

/** Digits, dots and minus signs around the cell must never be read. */
const embed = (cell: string) => new TextEncoder().encode(`-9.${cell}.9-9:99Z]"`);
const START = 3;
const AFTER = 10;

const formsOfText = (cell: string, zone: Zone | undefined) => {
  const bytes = embed(cell);
  return formsOf(bytes, START, bytes.length - AFTER, zone);
};

/** The JSON of a cell in each type that accepts it. */
function jsonOf(cell: string, zone: Zone | undefined): Partial<Record<ColumnType, string>> {
  const bytes = embed(cell);
  const out = new Uint8Array(jsonBound(bytes.length));
  const accepting = COLUMN_TYPES.filter((type) => cellFits(type, bytes, START, bytes.length - AFTER, zone));
  return Object.fromEntries(
    accepting.map((type) => {
      const end = TYPES[type].writeJson(bytes, START, bytes.length - AFTER, out, 0, zone);
      return [type, new TextDecoder('utf-8', { ignoreBOM: true }).decode(out.subarray(0, end))];
    }),
  );
}

/** The vector of a cell as the types have it. */
function cellVector(vector: CellVector): CellVector {
  const zone = zoneOf(vector);
  const forms = formsOfText(vector.cell, zone);
  const { string: _, ...json } = jsonOf(vector.cell, zone);
  return { ...vector, forms: formNames(forms), type: typeOf(forms, zone !== undefined) ?? null, json };
}

const typeOfAll = (cells: readonly string[], zone: Zone | undefined): ColumnType | null =>
  typeOf(
    cells.reduce((all, cell) => all | formsOfText(cell, zone), 0),
    zone !== undefined,
  ) ?? null;

const columnVector = (vector: ColumnVector): ColumnVector => ({
  ...vector,
  type: typeOfAll(vector.cells, zoneOf(vector)),
});

/** JSON in one line, with a space behind each comma and colon. A byte order mark, which editors hide, is escaped. */
const line = (vector: object): string =>
  JSON.stringify(vector, null, 1)
    .replaceAll(/([[{])\n */g, '$1')
    .replaceAll(/\n *([\]}])/g, '$1')
    .replaceAll(/\n */g, ' ')
    .replaceAll('\ufeff', '\\ufeff');

const list = (vectors: readonly object[]): string => vectors.map((vector) => `    ${line(vector)}`).join(',\n');

describe('the vectors', () => {
  it('are what the types make of their cells and columns (written by vitest --update)', async () => {
    const cells = list(VECTORS.cells.map(cellVector));
    const columns = list(VECTORS.columns.map(columnVector));
    const text = `{\n  "cells": [\n${cells}\n  ],\n  "columns": [\n${columns}\n  ]\n}\n`;
    await expect(text).toMatchFileSnapshot(fileURLToPath(VECTORS_PATH));
  });

  it('have every cell as it is in a string', () => {
    const changed = VECTORS.cells.filter(
      (vector) => JSON.parse(jsonOf(vector.cell, zoneOf(vector)).string ?? '') !== vector.cell,
    );
    expect(changed).toEqual([]);
  });

  it('have columns whose type does not depend on the order of their cells', () => {
    const changed = VECTORS.columns.filter(
      (vector) => typeOfAll([...vector.cells].reverse(), zoneOf(vector)) !== typeOfAll(vector.cells, zoneOf(vector)),
    );
    expect(changed).toEqual([]);
  });

  it('cover every bit of forms and every type', () => {
    const bits = new Set(VECTORS.cells.flatMap((vector) => cellVector(vector).forms));
    expect([...bits].sort()).toEqual(Object.keys(FORM_BITS).sort());
    const types = new Set(VECTORS.columns.map((vector) => columnVector(vector).type));
    expect(COLUMN_TYPES.filter((type) => !types.has(type))).toEqual([]);
  });
});

it('an empty cell is absent in every type', () => {
  for (const type of COLUMN_TYPES) {
    const out = new Uint8Array(8);
    expect(cellFits(type, out, 3, 3)).toBe(true);
    const end = TYPES[type].writeJson(out, 3, 3, out, 0);
    expect(new TextDecoder().decode(out.subarray(0, end))).toBe('null');
  }
});
