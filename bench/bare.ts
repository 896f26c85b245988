// DuckDB alone, as the yardstick: node dist/bench/bare.js table|parquet|json OUT FILE… Prints {"seconds":…}.
import { rmSync } from 'node:fs';
import { DuckDBInstance } from '@duckdb/node-api';

const [what, out = '', ...files] = process.argv.slice(2);
const list = `[${files.map((file) => `'${file}'`).join(', ')}]`;
rmSync(out, { force: true });
const instance = await DuckDBInstance.create(what === 'table' ? out : ':memory:');
const connection = await instance.connect();
const began = performance.now();
if (what === 'table') {
  await connection.run(`CREATE TABLE t AS SELECT * FROM read_csv(${list})`);
} else if (what === 'parquet') {
  await connection.run(`COPY (SELECT * FROM read_csv(${list})) TO '${out}' (FORMAT parquet, COMPRESSION zstd)`);
} else {
  await connection.run(`COPY (SELECT * FROM read_csv(${list})) TO '${out}' (FORMAT json)`);
}
const seconds = (performance.now() - began) / 1_000;
connection.closeSync();
instance.closeSync();
console.log(JSON.stringify({ seconds }));
