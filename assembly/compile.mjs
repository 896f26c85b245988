// Compiles this folder to a file: node assembly/compile.mjs OUT.wasm
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const SOURCE = 'assembly/index.ts';
const OPTIONS = [
  '-O3',
  '--enable',
  'simd',
  '--runtime',
  'stub',
  '--importMemory',
  '--noAssert',
  '--outFile',
  'out.wasm',
];

let bytes;
const { error, stderr } = await asc.main([SOURCE, ...OPTIONS], {
  baseDir: fileURLToPath(new URL('..', import.meta.url)),
  writeFile: (name, contents) => {
    if (name === 'out.wasm') bytes = contents;
  },
});
if (error || bytes === undefined) throw new Error(`${SOURCE} does not compile: ${error} ${stderr}`);
await writeFile(process.argv[2], bytes);
