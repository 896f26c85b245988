import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { COLUMN_TYPES, type ColumnType, narrowestType } from '../../../src/cells/types/column-types.ts';
import { Zone } from '../../../src/cells/types/zone.ts';
import { FORM_BITS, fitsBytes, formNames, formsOfCell, jsonOf } from '../../support/forms.ts';
import { type CellVector, type ColumnVector, VECTORS, VECTORS_PATH } from '../../support/vectors.ts';

const zoneOf = ({ timezone }: { readonly timezone?: string }) =>
  timezone === undefined ? undefined : new Zone(timezone);

/** The JSON of a cell in each type that accepts it. */
const jsonByType = (cell: string, zone: Zone | undefined): Partial<Record<ColumnType, string>> =>
  Object.fromEntries(
    COLUMN_TYPES.filter((type) => fitsBytes(type, cell, zone)).map((type) => [type, jsonOf(type, cell, zone)]),
  );

/** The vector of a cell as the types have it. */
function cellVector(vector: CellVector): CellVector {
  const zone = zoneOf(vector);
  const forms = formsOfCell(vector.cell, zone);
  const { string: _, ...json } = jsonByType(vector.cell, zone);
  return { ...vector, forms: formNames(forms), type: narrowestType(forms, zone) ?? null, json };
}

const typeOfAll = (cells: readonly string[], zone: Zone | undefined): ColumnType | null =>
  narrowestType(
    cells.reduce((forms, cell) => forms | formsOfCell(cell, zone), 0),
    zone,
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
      (vector) => JSON.parse(jsonOf('string', vector.cell, zoneOf(vector))) !== vector.cell,
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
