import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { FOLDERS, reportOf } from './folders.mjs';

const ROOT = join(import.meta.dirname, '../..');
const KILLED = ['Killed', 'Timeout'];
const ALIVE = ['Survived', 'NoCoverage'];

/** The latest result of each folder that has one: of the changes tried so far, how many a test noticed. */
export function printScores() {
  for (const folder of Object.keys(FOLDERS)) {
    const path = join(ROOT, `${reportOf(folder)}.json`);
    if (!existsSync(path)) continue;
    const { files } = JSON.parse(readFileSync(path, 'utf8'));
    const all = Object.values(files).flatMap((file) => file.mutants.map((mutant) => mutant.status));
    const count = (statuses) => all.filter((status) => statuses.includes(status)).length;
    const tried = count([...KILLED, ...ALIVE]);
    const score = tried === 0 ? '-' : `${((100 * count(KILLED)) / tried).toFixed(1)} %`;
    console.log(`src/${folder}: ${score} of ${tried} (${all.length - tried} not tried or ignored)`);
  }
}
