import type { TypeFace } from './face.ts';
import { copyBytes } from './json-text.ts';
import { listFace } from './list.ts';
import { sqlNumberList } from './list-sql.ts';
import { LONG_FACE, sqlLong } from './long.ts';

/** A JSON list of integers of 64 bits and nulls. */
export const LONG_LIST: TypeFace = {
  ...listFace('long[]', LONG_FACE, (expr) => sqlNumberList(expr, 'BIGINT', sqlLong), copyBytes),
  sqlClean: (expr) => `from_json(${expr}, '["BIGINT"]')`,
};
