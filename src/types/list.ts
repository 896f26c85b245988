import { classify } from './classify.ts';
import { fitsWholly } from './evidence.ts';
import type { TypeFace } from './face.ts';
import { writeNull } from './json-text.ts';
import { elementEnd, isNull, skipSpace } from './list-text.ts';
import { absentOr } from './sql.ts';
import type { ColumnType } from './type.ts';

const COMMA = 44;
const OPEN = 91;
const CLOSE = 93;

/** Writes one element of a list, [start, end) of its text; returns where it ends in `out`. */
export type WriteElement = (b: Uint8Array, start: number, end: number, out: Uint8Array, at: number) => number;

/** Copies a list cell that fits as JSON without white space, element by element. */
function writeList(
  b: Uint8Array,
  start: number,
  end: number,
  out: Uint8Array,
  at: number,
  write: WriteElement,
): number {
  let to = at;
  out[to++] = OPEN;
  let i = skipSpace(b, skipSpace(b, start, end) + 1, end);
  while (i < end && b[i] !== CLOSE) {
    const stop = elementEnd(b, i, end);
    to = write(b, i, stop, out, to);
    i = skipSpace(b, stop, end);
    if (b[i] !== COMMA) break;
    out[to++] = COMMA;
    i = skipSpace(b, i + 1, end);
  }
  out[to++] = CLOSE;
  return to;
}

/** What the three list types have in common. `sql` is the guarded expression, `item` the element's face. */
export function listFace(
  type: ColumnType,
  item: TypeFace,
  sql: (expr: string) => string,
  write: WriteElement,
): Omit<TypeFace, 'sqlClean'> {
  return {
    type,
    accepts: (b, start, end) => start === end || fitsWholly(classify(b, start, end, undefined), type, false),
    writeJson(b, start, end, out, at) {
      if (start === end || isNull(b, start, end)) return writeNull(out, at);
      return writeList(b, start, end, out, at, write);
    },
    duckdb: (zoned) => `${item.duckdb(zoned)}[]`,
    sql,
    sqlFits: (expr) => absentOr(expr, sql(expr)),
    native: () => false,
    sqlText: (expr) => `CAST(to_json(${expr}) AS VARCHAR)`,
    jsonSchema: (zoned) => ({ type: ['array', 'null'], items: item.jsonSchema(zoned) }),
    arrow: (zoned) => ({ kind: 'list', item: item.arrow(zoned) }),
  };
}
