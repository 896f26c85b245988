// This folder: the column types, one file each: how a cell is classified, and its value as JSON, SQL and Arrow.

import { defect } from '../base/errors.ts';
import { BOOLEAN } from './boolean.ts';
import { DATE_FACE } from './date.ts';
import { DATETIME } from './datetime.ts';
import { DOUBLE_FACE } from './double.ts';
import { DOUBLE_LIST } from './double-list.ts';
import type { TypeFace } from './face.ts';
import { LONG_FACE } from './long.ts';
import { LONG_LIST } from './long-list.ts';
import { STRING_FACE } from './string.ts';
import { STRING_LIST } from './string-list.ts';
import type { ColumnType } from './type.ts';
import type { Zone } from './zone.ts';
import { sqlInstant } from './zone-sql.ts';

/** Every type with all its faces. */
export const TYPES = {
  boolean: BOOLEAN,
  long: LONG_FACE,
  double: DOUBLE_FACE,
  date: DATE_FACE,
  datetime: DATETIME,
  string: STRING_FACE,
  'string[]': STRING_LIST,
  'long[]': LONG_LIST,
  'double[]': DOUBLE_LIST,
} as const satisfies Record<ColumnType, TypeFace>;

type Widening = (expr: string, from: ColumnType, zone: Zone | undefined) => string;

const text: Widening = (expr, from, zone) => TYPES[from].sqlText(expr, zone);
const toDatetime: Widening = (expr, _from, zone) => {
  const wall = `CAST(${expr} AS TIMESTAMP)`;
  return zone === undefined ? wall : sqlInstant(wall, zone);
};
const cast =
  (type: string): Widening =>
  (expr) =>
    `CAST(${expr} AS ${type})`;

/** The types that a stored column may become, and how. */
const WIDENINGS = {
  boolean: { string: text },
  long: { double: cast('DOUBLE'), string: text },
  double: { string: text },
  date: { datetime: toDatetime, string: text },
  datetime: { string: text },
  string: {},
  'string[]': { string: text },
  'long[]': { 'double[]': cast('DOUBLE[]'), 'string[]': cast('VARCHAR[]'), string: text },
  'double[]': { 'string[]': cast('VARCHAR[]'), string: text },
} as const satisfies Record<ColumnType, Partial<Record<ColumnType, Widening>>>;

/** The types that `from` can widen to, the nearest first. */
export function widenings(from: ColumnType): ColumnType[] {
  return Object.keys(WIDENINGS[from]) as ColumnType[];
}

/** A typed expression of type `from` as the wider type `to`: what `ALTER … SET DATA TYPE … USING` needs. */
export function sqlWiden(expr: string, from: ColumnType, to: ColumnType, zone?: Zone): string {
  if (from === to) return expr;
  const table: Partial<Record<ColumnType, Widening>> = WIDENINGS[from];
  const widen = table[to];
  if (widen === undefined) throw defect(`A column of type ${from} cannot become ${to}.`);
  return widen(expr, from, zone);
}
