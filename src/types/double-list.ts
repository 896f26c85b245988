import { DOUBLE_FACE, sqlDouble } from './double.ts';
import type { TypeFace } from './face.ts';
import { copyBytes } from './json-text.ts';
import { listFace } from './list.ts';
import { sqlNumberList } from './list-sql.ts';

/** A JSON list of doubles, integers that a double holds exactly, and nulls. */
export const DOUBLE_LIST: TypeFace = {
  ...listFace('double[]', DOUBLE_FACE, (expr) => sqlNumberList(expr, 'DOUBLE', sqlDouble), copyBytes),
  sqlClean: (expr) => `from_json(${expr}, '["DOUBLE"]')`,
};
