import { textDecoder } from '@duckdb/node-api/lib/vectors/dataAccessors.js';

// DuckDB's client drops a U+FEFF at the beginning of every text that it reads (1.5.6): names and ids would be others.
const wholeTextDecoder = new TextDecoder('utf-8', { ignoreBOM: true });
textDecoder.decode = wholeTextDecoder.decode.bind(wholeTextDecoder);
