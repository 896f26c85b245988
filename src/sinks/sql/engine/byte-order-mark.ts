import { textDecoder } from '@duckdb/node-api/lib/vectors/dataAccessors.js';

const whole = new TextDecoder('utf-8', { ignoreBOM: true });

/**
 * DuckDB's client decodes every text as if it were a file of its own, and leaves out a U+FEFF at its beginning (measured,
 * 1.5.6): a column or an id that begins with one would be another one. From here on it is kept. May be called again.
 */
export function keepByteOrderMarks(): void {
  textDecoder.decode = (bytes: Uint8Array) => whole.decode(bytes);
}
