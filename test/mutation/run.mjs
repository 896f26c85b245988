// npm run mutation [-- FOLDER [MINUTES [SHARE]]]: changes one thing at a time in a folder of src and runs the tests that execute it.
// A change that no test notices is a missing test, or changes nothing (see CONTRIBUTING.md). Stops after MINUTES (30) and
// goes on from there the next time: what neither the folder nor its tests changed is not run again. A SHARE such as 0.1 tries
// that part of the lines alone, 0.1-0.2 as many others, for a folder that is too large to be tried whole.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDERS, reportOf, shareOf } from './folders.mjs';
import { printScores } from './scores.mjs';

const ROOT = join(import.meta.dirname, '../..');
const BIN = join(import.meta.dirname, 'node_modules/.bin/node');
const STRYKER = join(import.meta.dirname, 'node_modules/@stryker-mutator/core/bin/stryker.js');

const [folder, minutes = '30', share = '1'] = process.argv.slice(2);
if (folder !== undefined && !(folder in FOLDERS))
  throw new Error(`no such folder: ${folder}; there are ${Object.keys(FOLDERS).join(', ')}`);
shareOf(share);

if (!existsSync(STRYKER)) {
  // Vitest is the project's own.
  const install = spawnSync('npm', ['ci', '--legacy-peer-deps'], { cwd: import.meta.dirname, stdio: 'inherit' });
  if (install.status !== 0) process.exit(install.status ?? 1);
}

const began = performance.now();
for (const one of folder === undefined ? Object.keys(FOLDERS) : [folder]) {
  const left = Number(minutes) * 60_000 - (performance.now() - began);
  if (left > 0) await mutate(one, left);
}
printScores();

/** Stryker writes what it has when it is stopped. */
async function mutate(name, ms) {
  console.log(`src/${name}, report in ${reportOf(name)}.html`);
  const child = spawn(BIN, [STRYKER, 'run', 'test/mutation/stryker.config.mjs'], {
    cwd: ROOT,
    stdio: 'inherit',
    env: { ...process.env, MUTATED_FOLDER: name, MUTATED_SHARE: share },
  });
  const timer = setTimeout(() => child.kill('SIGINT'), ms);
  await new Promise((resolve) => child.once('close', resolve));
  clearTimeout(timer);
  rmSync(join(ROOT, '.mutation/sandbox'), { recursive: true, force: true });
}
