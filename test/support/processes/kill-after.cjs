// Preloaded into a process (node -r): KILL_AFTER=commit:3 ends it by SIGKILL right after its third COMMIT in DuckDB,
// KILL_AFTER=rename:3 right after the third rename or link of a file, before the code that waits for it goes on.
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');
const { DuckDBConnection } = require('@duckdb/node-api');

const [what, count] = (process.env.KILL_AFTER ?? 'nothing:0').split(':');
let left = Number(count);

function happened(step) {
  if (step === what && --left === 0) process.kill(process.pid, 'SIGKILL');
}

const run = DuckDBConnection.prototype.run;
DuckDBConnection.prototype.run = async function (sql, ...rest) {
  const result = await run.call(this, sql, ...rest);
  if (/^\s*COMMIT\b/i.test(sql)) happened('commit');
  return result;
};

for (const name of ['renameSync', 'linkSync']) {
  const original = fs[name];
  fs[name] = (...parameters) => {
    original(...parameters);
    happened('rename');
  };
}
for (const name of ['rename', 'link']) {
  const original = fs.promises[name];
  fs.promises[name] = async (...parameters) => {
    await original(...parameters);
    happened('rename');
  };
}
syncBuiltinESMExports();
