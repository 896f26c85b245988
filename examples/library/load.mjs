// Loads the export of a service into a DuckDB file: DFINERY_EXPORT_TOKEN=… node load.mjs dfinery.json events.duckdb
import { readFileSync } from 'node:fs';
import { sync } from 'dfinery-elt';

const [file, place] = process.argv.slice(2);
const config = JSON.parse(readFileSync(file, 'utf8'));
const { rows, next_from_date } = await sync({
  target: 'duckdb',
  place,
  config: { export_token: process.env.DFINERY_EXPORT_TOKEN, ...config },
  log: ({ level, message }) => level === 'warn' && console.error(message),
});
console.log(`${rows} rows; the next sync begins at ${next_from_date}`);
