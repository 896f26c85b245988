// Builds dist/: the three commands, the library and the benchmarks. They are ES modules, packages left outside.
// `npm run types` adds the type declarations.
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { build } from 'esbuild';
import { LOADERS, REQUIRE_BANNER } from './connectors/bundle.mjs';
import { bundledPackages, componentsOf, noticesOf } from './connectors/notices.mjs';
import { validators } from './connectors/validator.mjs';

const { dependencies, engines } = JSON.parse(await readFile('package.json', 'utf8'));
const commands = {
  'dfinery-elt': 'src/cli/main.ts',
  'source-dfinery': 'connectors/source-dfinery/main.ts',
  'destination-dfinery': 'connectors/destination-dfinery/main.ts',
};
const entryPoints = { index: 'src/index.ts' };
for (const [name, file] of Object.entries(commands)) entryPoints[`chunks/${name}`] = file;
const benchmarks = {
  'bench/main': 'bench/main.ts',
  'bench/peers': 'bench/peers/main.ts',
  'bench/serve': 'bench/serve.ts',
  'bench/bare': 'bench/bare.ts',
};

/**
 * Dependencies stay outside: native code, WebAssembly, and the SDK of object stores, which most commands never load. All
 * other packages are bundled, which starts faster: of a package in CommonJS Node reads each file twice.
 */
const external = Object.keys(dependencies);

/** Help is measured by `string-width`, which takes 20 ms to load: no character of those texts is wide. */
const asciiWidth = {
  name: 'ascii-width',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^string-width$/ }, ({ path }) => ({ path, namespace: 'ascii-width' }));
    onLoad({ filter: /.*/, namespace: 'ascii-width' }, () => ({ contents: 'module.exports = (text) => text.length;' }));
  },
};

// The declarations stay: packing builds again after it has made them.
for (const name of existsSync('dist') ? await readdir('dist') : [])
  if (name !== 'types') await rm(`dist/${name}`, { recursive: true });
const options = {
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  external: external.flatMap((name) => [name, `${name}/*`]),
  plugins: [asciiWidth, validators],
  loader: LOADERS,
  banner: REQUIRE_BANNER,
  // Constants become literals in the byte loops: a fifth faster. Names and lines stay as they are.
  minifySyntax: true,
  // THIRD_PARTY_NOTICES has them.
  legalComments: 'none',
  metafile: true,
  logLevel: 'warning',
};
const { metafile } = await build({ ...options, entryPoints, chunkNames: 'chunks/[name]-[hash]' });
// The image is built without them.
if (existsSync('bench')) await build({ ...options, entryPoints: benchmarks, chunkNames: 'bench/chunks/[name]-[hash]' });
const packages = bundledPackages(Object.values(metafile.outputs));
await writeFile('dist/THIRD_PARTY_NOTICES', noticesOf(packages));
await writeFile('dist/bundled.cdx.json', JSON.stringify(componentsOf(packages)));
const leastNode = engines.node.replace('>=', '');
const [major, minor] = leastNode.split('.');
await mkdir('dist/bin');
for (const name of Object.keys(commands)) {
  // An older Node must get this far: it would end with the stack trace of some package.
  const text = `#!/usr/bin/env node
const [major, minor] = process.versions.node.split('.').map(Number);
if (major > ${major} || (major === ${major} && minor >= ${minor})) import('../chunks/${name}.js');
else {
  console.error('dfinery-elt needs Node ${leastNode} or later, this is ' + process.versions.node + '.');
  process.exitCode = 2;
}
`;
  await writeFile(`dist/bin/${name}.js`, text, { mode: 0o755 });
}
