// Bundles one connector, with everything in it, into the single file that its image carries, beside the notices of the
// packages in it.
//   node connectors/bundle.mjs source-dfinery OUT.mjs
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { bundledPackages, noticesOf } from './notices.mjs';
import { validators } from './validator.mjs';

/** Gives an ES module the `require` by which packages in CommonJS ask for others, or for Node's own modules. */
export const REQUIRE_BANNER = {
  js: "import{createRequire as __createRequire}from'node:module';const require=__createRequire(import.meta.url);",
};

/** What is no module: SQL as text. */
export const LOADERS = { '.sql': 'text' };

export async function bundle(connector, outfile) {
  const { metafile } = await build({
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
    legalComments: 'none',
    metafile: true,
    banner: REQUIRE_BANNER,
  });
  await writeFile(
    join(dirname(outfile), 'THIRD_PARTY_NOTICES'),
    noticesOf(bundledPackages(Object.values(metafile.outputs))),
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await bundle(process.argv[2], process.argv[3]);
