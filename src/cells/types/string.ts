import type { ColumnCodec } from './codec.ts';
import { writeNull, writeString } from './json-text.ts';

/** Any text, the text `null` too; only an empty cell is absent. */
export const STRING_CODEC: ColumnCodec = {
  type: 'string',
  acceptedForms: () => ~0,
  duckdb: () => 'VARCHAR',
  isJson: false,
  writeJson(bytes, start, end, out, at) {
    return start === end ? writeNull(out, at) : writeString(bytes, start, end, out, at);
  },
  sql: (expr) => `nullif(${expr}, '')`,
  sqlClean: (expr) => expr,
  sqlFits: () => 'true',
  native: () => true,
  sqlText: (expr) => expr,
  widenings: {},
  widenedText: (expr) => expr,
  jsonSchema: () => ({ type: ['string', 'null'] }),
};
