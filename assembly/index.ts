// All functions of one module, which works on one memory: `npm run wasm` compiles it into src/cells/csv/csv.wasm, and
// src/cells/csv/csv-memory.ts loads it.

export { copyBytes, nextRow, writeCells, writeText } from './csv';
export { editRow, hashJobs, prepareKey } from './edit';
export { observeCells } from './observe';
