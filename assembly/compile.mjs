// Compiles the files of this folder. `npm run wasm` writes their modules into src/csv/wasm; with --print NAME one goes to
// stdout.
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

const NAMES = ['csv', 'edit', 'observe'];
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
const pathOf = (name) => fileURLToPath(new URL(`../src/csv/wasm/${name}-module.ts`, import.meta.url));

const print = process.argv.indexOf('--print');
if (print >= 0) process.stdout.write(await moduleOf(process.argv[print + 1]));
else for (const name of NAMES) await writeFile(pathOf(name), await moduleOf(name));

async function moduleOf(name) {
  return moduleText(name, await compile(`assembly/${name}.ts`));
}

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
function moduleText(name, bytes) {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,110}/g) ?? [];
  const list = lines.map((line) => `  '${line}',`).join('\n');
  return `// Written by \`npm run wasm\` from assembly/${name}.ts.\n\n/** The compiled module, in base64. */\nexport const ${name.toUpperCase()}_MODULE = [\n${list}\n].join('');\n`;
}
