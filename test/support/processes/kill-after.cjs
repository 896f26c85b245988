// Preloaded into a process (node -r): KILL_AFTER=commit:3 ends it by SIGKILL right after its third COMMIT in DuckDB,
// KILL_AFTER=rename:3 right after the third rename or link of a file, before the code that waits for it goes on;
// KILL_AFTER=any:3 right after the third of these or of the removals of a file. STEPS_FILE is told how many of these there were.
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');

const [what, count] = (process.env.KILL_AFTER ?? 'nothing:0').split(':');
let left = Number(count);
let steps = 0;

function happened(step) {
  steps++;
  if ((step === what || what === 'any') && --left === 0) process.kill(process.pid, 'SIGKILL');
}

if (process.env.STEPS_FILE !== undefined) {
  process.on('exit', () => fs.writeFileSync(process.env.STEPS_FILE, String(steps)));
}

// The client of DuckDB is bundled with the program; what it calls is not.
const path = require.resolve('@duckdb/node-bindings');
const bindings = require(path);
async function query(connection, sql) {
  const result = await bindings.query(connection, sql);
  if (/^\s*COMMIT\b/i.test(sql)) happened('commit');
  return result;
}
require.cache[path].exports = Object.create(bindings, { query: { value: query } });

const STEPS = { rename: 'rename', link: 'rename', rm: 'remove', unlink: 'remove' };
for (const [name, step] of Object.entries(STEPS)) {
  const [atOnce, original] = [fs[`${name}Sync`], fs.promises[name]];
  fs[`${name}Sync`] = (...parameters) => {
    atOnce(...parameters);
    happened(step);
  };
  fs.promises[name] = async (...parameters) => {
    await original(...parameters);
    happened(step);
  };
}
syncBuiltinESMExports();
