// Preloaded into a process (node -r): KILL_AFTER=3 ends it by SIGKILL right after its third step, before the code that
// waits for it goes on. A step is a COMMIT in DuckDB, and each rename, link or removal of a file.
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');

let left = Number(process.env.KILL_AFTER);

function happened() {
  if (--left === 0) process.kill(process.pid, 'SIGKILL');
}

// The client of DuckDB is bundled with the program; what it calls is not.
const path = require.resolve('@duckdb/node-bindings');
const bindings = require(path);
async function query(connection, sql) {
  const result = await bindings.query(connection, sql);
  if (/^\s*COMMIT\b/i.test(sql)) happened();
  return result;
}
require.cache[path].exports = Object.create(bindings, { query: { value: query } });

for (const name of ['rename', 'link', 'rm', 'unlink']) {
  const [atOnce, original] = [fs[`${name}Sync`], fs.promises[name]];
  fs[`${name}Sync`] = (...parameters) => {
    atOnce(...parameters);
    happened();
  };
  fs.promises[name] = async (...parameters) => {
    await original(...parameters);
    happened();
  };
}
syncBuiltinESMExports();
