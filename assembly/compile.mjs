// Compiles this folder. `npm run wasm` writes the module into src/csv/wasm; with --print it goes to stdout.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const SOURCE = 'assembly/index.ts';
const TARGET = fileURLToPath(new URL('../src/csv/wasm/csv-module.ts', import.meta.url));
const OPTIONS = [
  '-O3',
  '--enable',
  'simd',
  '--runtime',
  'stub',
  '--importMemory',
  '--noAssert',
  '--outFile',
  'module.wasm',
];
const ROOT = fileURLToPath(new URL('..', import.meta.url));

const text = moduleText(await compile(SOURCE));
if (process.argv.includes('--print')) process.stdout.write(text);
else await writeFile(TARGET, text);

async function compile(source) {
  let bytes;
  const { error, stderr } = await asc.main([source, ...OPTIONS], {
    baseDir: ROOT,
    writeFile: (name, contents) => {
      if (name === 'module.wasm') bytes = contents;
    },
  });
  if (error || bytes === undefined) throw new Error(`${source} does not compile: ${error} ${stderr}`);
  return bytes;
}

/** TypeScript that holds the bytes: the images are one bundled file. */
function moduleText(bytes) {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,110}/g) ?? [];
  const list = lines.map((line) => `  '${line}',`).join('\n');
  return `// Written by \`npm run wasm\` from assembly/.\n\n/** The compiled module, in base64. */\nexport const CSV_MODULE = [\n${list}\n].join('');\n`;
}
