import { readFileSync } from 'node:fs';
import type { ColumnType } from '../../src/cells/types/column-types.ts';
import type { FormName } from './forms.ts';

/** A cell that is alone in its column. */
export interface CellVector {
  readonly cell: string;
  readonly timezone?: string;
  readonly forms: readonly FormName[];
  readonly type: ColumnType | null;
  readonly json: Partial<Record<ColumnType, string>>;
}

/** The cells of a column, in any order. */
export interface ColumnVector {
  readonly cells: readonly string[];
  readonly timezone?: string;
  readonly type: ColumnType | null;
}

export const VECTORS_PATH = new URL('../../spec/vectors/types.json', import.meta.url);
/** What every engine makes of cells and columns: see spec/vectors/README.md. */
export const VECTORS: { readonly cells: readonly CellVector[]; readonly columns: readonly ColumnVector[] } = JSON.parse(
  readFileSync(VECTORS_PATH, 'utf8'),
);
