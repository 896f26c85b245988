import type { TypeFace } from './face.ts';
import { writeNull, writeString } from './json-text.ts';

/** Any text, the text `null` too; only an empty cell is absent. */
export const STRING_FACE: TypeFace = {
  type: 'string',
  accepts: () => true,
  writeJson(b, start, end, out, at) {
    return start === end ? writeNull(out, at) : writeString(b, start, end, out, at);
  },
  duckdb: () => 'VARCHAR',
  sql: (expr) => `nullif(${expr}, '')`,
  sqlClean: (expr) => expr,
  sqlFits: () => 'true',
  native: () => true,
  sqlText: (expr) => expr,
  jsonSchema: () => ({ type: ['string', 'null'] }),
  arrow: () => ({ kind: 'utf8' }),
};
