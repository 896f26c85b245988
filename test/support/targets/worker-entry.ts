import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

/** Bundles the entry of a thread, a path below the root of the repository, into one file in `dir`. */
export async function bundledWorker(dir: string, entry: string): Promise<URL> {
  const outfile = join(dir, 'worker.mjs');
  await build({
    entryPoints: [join(ROOT, entry)],
    bundle: true,
    platform: 'node',
    format: 'esm',
    outfile,
    logLevel: 'error',
  });
  return pathToFileURL(outfile);
}
