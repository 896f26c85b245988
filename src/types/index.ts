// This folder: the column types, one file each: how a cell is classified, and its value as JSON, SQL and Arrow.

import { internalError } from '../base/errors.ts';
import { BOOLEAN } from './boolean.ts';
import type { ColumnCodec, Conversion } from './codec.ts';
import { DATE_CODEC } from './date.ts';
import { DATETIME } from './datetime.ts';
import { DOUBLE_CODEC } from './double.ts';
import { DOUBLE_LIST, LONG_LIST, STRING_LIST } from './list.ts';
import { LONG_CODEC } from './long.ts';
import { STRING_CODEC } from './string.ts';
import type { ColumnType } from './type.ts';
import type { Zone } from './zone.ts';

/** Every type with its codec. */
export const TYPES: Readonly<Record<ColumnType, ColumnCodec>> = {
  boolean: BOOLEAN,
  long: LONG_CODEC,
  double: DOUBLE_CODEC,
  date: DATE_CODEC,
  datetime: DATETIME,
  string: STRING_CODEC,
  'string[]': STRING_LIST,
  'long[]': LONG_LIST,
  'double[]': DOUBLE_LIST,
};

/** The types that `from` can widen to, the nearest first. */
export function widenings(from: ColumnType): ColumnType[] {
  return Object.keys(TYPES[from].widenings) as ColumnType[];
}

/** A typed expression of type `from` as the wider type `to`: what `ALTER … SET DATA TYPE … USING` needs. */
export function sqlWiden(expr: string, from: ColumnType, to: ColumnType, zone?: Zone): string {
  if (from === to) return expr;
  const convert: Conversion | undefined = TYPES[from].widenings[to];
  if (convert === undefined) throw internalError(`A column of type ${from} cannot become ${to}.`);
  return convert(expr, zone);
}
