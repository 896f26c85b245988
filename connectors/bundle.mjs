// Bundles one connector, with everything in it, into the single file that its image carries.
//   node connectors/bundle.mjs source-dfinery OUT.mjs
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { validators } from './validator.mjs';

/** Gives an ES module the `require` by which packages in CommonJS ask for others, or for Node's own modules. */
export const REQUIRE_BANNER = {
  js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
};

/** What is no module: SQL as text. */
export const LOADERS = { '.sql': 'text' };

export const bundle = (connector, outfile) =>
  build({
    entryPoints: [fileURLToPath(new URL(`${connector}/main.ts`, import.meta.url))],
    outfile,
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    loader: LOADERS,
    plugins: [validators],
    logLevel: 'warning',
    banner: REQUIRE_BANNER,
  });

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundle(process.argv[2], process.argv[3]);
