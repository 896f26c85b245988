// Compiles assembly/csv.ts. `npm run wasm` writes the module into src/csv/wasm/csv-module.ts; with --print it goes to stdout.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const OPTIONS = [
  '-O3',
  '--enable',
  'simd',
  '--runtime',
  'stub',
  '--importMemory',
  '--noAssert',
  '--outFile',
  'csv.wasm',
];
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const TARGET = fileURLToPath(new URL('../src/csv/wasm/csv-module.ts', import.meta.url));

const text = moduleText(await compile());
if (process.argv.includes('--print')) process.stdout.write(text);
else await writeFile(TARGET, text);

async function compile() {
  let bytes;
  const { error, stderr } = await asc.main(['assembly/csv.ts', ...OPTIONS], {
    baseDir: ROOT,
    writeFile: (name, contents) => {
      if (name === 'csv.wasm') bytes = contents;
    },
  });
  if (error || bytes === undefined) throw new Error(`assembly/csv.ts does not compile: ${error} ${stderr}`);
  return bytes;
}

/** TypeScript that holds the bytes: the images are one bundled file. */
function moduleText(bytes) {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,110}/g) ?? [];
  const list = lines.map((line) => `  '${line}',`).join('\n');
  return `// Written by \`npm run wasm\` from assembly/csv.ts.\n\n/** The compiled module, in base64. */\nexport const CSV_MODULE = [\n${list}\n].join('');\n`;
}
