import { BACKSLASH, QUOTE } from '../../base/ascii.ts';
import { copyBytes, type ScalarCodec } from './codec.ts';

/** What a JSON string has in place of a quote, a backslash or a control character. */
const ESCAPES = Array.from({ length: BACKSLASH + 1 }, (_, c) =>
  Buffer.from(JSON.stringify(String.fromCharCode(c)).slice(1, -1)),
);

/** Writes valid UTF-8 as a JSON string with its quotes. */
export function writeString(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  let to = at;
  out[to++] = QUOTE;
  for (let i = start; i < end; i++) {
    const c = bytes[i];
    if (c >= 32 && c !== QUOTE && c !== BACKSLASH) out[to++] = c;
    else to = copyBytes(ESCAPES[c], 0, ESCAPES[c].length, out, to);
  }
  out[to++] = QUOTE;
  return to;
}

/** Any text, the text `null` too; only an empty cell is absent. */
export const STRING_CODEC: ScalarCodec = {
  forms: ~0,
  duckdbType: 'VARCHAR',
  jsonSchema: { type: ['string', 'null'] },
  checkedSql: (expr) => `nullif(${expr}, '')`,
  textSql: (expr) => expr,
  writeJson: writeString,
};
