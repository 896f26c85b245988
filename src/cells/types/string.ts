import { BACKSLASH, QUOTE, ZERO } from '../../base/ascii.ts';
import type { ScalarCodec } from './codec.ts';

const HEX_DIGITS = Uint8Array.from('0123456789abcdef', (c) => c.charCodeAt(0));
/** The character behind the backslash for a control character with a short escape; 0 for the others. */
const SHORT = new Uint8Array(32);
SHORT[8] = 0x62;
SHORT[9] = 0x74;
SHORT[10] = 0x6e;
SHORT[12] = 0x66;
SHORT[13] = 0x72;

/** Copies ASCII or UTF-8 bytes as they are. */
export function copyBytes(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  let to = at;
  for (let i = start; i < end; i++) out[to++] = bytes[i];
  return to;
}

/** Writes valid UTF-8 as a JSON string with its quotes. */
export function writeString(bytes: Uint8Array, start: number, end: number, out: Uint8Array, at: number): number {
  let to = at;
  out[to++] = QUOTE;
  for (let i = start; i < end; i++) {
    const c = bytes[i];
    if (c >= 32 && c !== QUOTE && c !== BACKSLASH) out[to++] = c;
    else to = writeEscape(c, out, to);
  }
  out[to++] = QUOTE;
  return to;
}

function writeEscape(c: number, out: Uint8Array, at: number): number {
  out[at] = BACKSLASH;
  if (c >= 32) {
    out[at + 1] = c;
    return at + 2;
  }
  if (SHORT[c] !== 0) {
    out[at + 1] = SHORT[c];
    return at + 2;
  }
  out[at + 1] = 0x75;
  out[at + 2] = ZERO;
  out[at + 3] = ZERO;
  out[at + 4] = HEX_DIGITS[c >> 4];
  out[at + 5] = HEX_DIGITS[c & 15];
  return at + 6;
}

/** Any text, the text `null` too; only an empty cell is absent. */
export const STRING_CODEC: ScalarCodec = {
  forms: ~0,
  castForms: ~0,
  duckdb: 'VARCHAR',
  jsonSchema: { type: ['string', 'null'] },
  sql: (expr) => `nullif(${expr}, '')`,
  textSql: (expr) => expr,
  writeJson: writeString,
};
