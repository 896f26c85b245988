// All functions of one module, which works on one memory: `npm run wasm` compiles it into src/csv/wasm/csv-module.ts, and
// src/csv/wasm/csv-memory.ts loads it.

export { copyBytes, nextRow, writeCells, writeText } from './csv';
export { editRow, hashJobs, prepareKey } from './edit';
export { observeCells } from './observe';
