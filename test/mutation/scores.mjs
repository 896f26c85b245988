import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import equivalent from './equivalent.json' with { type: 'json' };
import { FOLDERS, reportOf } from './folders.mjs';

const ROOT = join(import.meta.dirname, '../..');
const KILLED = ['Killed', 'Timeout'];
const ALIVE = ['Survived', 'NoCoverage'];

/** True for a change that makes no difference, by equivalent.json: its file, its line without blanks around it, its kind. */
const isEquivalent = (file, line, mutator) =>
  equivalent.some(
    (one) => one.file === file && one.line === line && (one.mutators[0] === 'all' || one.mutators.includes(mutator)),
  );

/** The latest result of each folder that has one: of the changes tried so far, how many a test noticed, and which none did. */
export function printScores() {
  for (const folder of Object.keys(FOLDERS)) {
    const path = join(ROOT, `${reportOf(folder)}.json`);
    if (!existsSync(path)) continue;
    const { files } = JSON.parse(readFileSync(path, 'utf8'));
    const all = Object.entries(files).flatMap(([file, { source, mutants }]) => {
      const lines = source.split('\n');
      return mutants
        .map(({ mutatorName, location, status }) => ({ file, mutatorName, at: location.start.line, status }))
        .filter(({ at, mutatorName }) => !isEquivalent(file, lines[at - 1].trim(), mutatorName));
    });
    const of = (statuses) => all.filter(({ status }) => statuses.includes(status));
    const tried = of([...KILLED, ...ALIVE]).length;
    const score = tried === 0 ? '-' : `${((100 * of(KILLED).length) / tried).toFixed(1)} %`;
    console.log(`src/${folder}: ${score} of ${tried} (${all.length - tried} not tried or ignored)`);
    for (const { file, at, mutatorName } of of(ALIVE)) console.log(`  ${file}:${at} ${mutatorName}`);
  }
}
