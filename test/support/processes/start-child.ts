import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { validators } from '../../../connectors/validator.mjs';
import type { CheckedDay } from '../../../src/extract/checked-day.ts';
import type { Place } from '../targets/place.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const CHILD = join(ROOT, `node_modules/.cache/place-child-${process.pid}.mjs`);

/** Builds the program of `startChild`, once a test file. */
export const buildChild = () =>
  build({
    entryPoints: [join(ROOT, 'test/support/processes/place-child.ts')],
    outfile: CHILD,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
    loader: { '.sql': 'text' },
    logLevel: 'error',
    plugins: [validators],
  });

let count = 0;

/** Starts a process that commits these batches to a place: `place-child.ts`. */
export function startChild(place: Place, batches: readonly (readonly CheckedDay[])[]) {
  const list = join(place.dir, `batches-${count++}.json`);
  writeFileSync(list, JSON.stringify(batches));
  const argv = [CHILD, place.target.name, place.place, list];
  return spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'inherit'] });
}
