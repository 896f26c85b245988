import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { measured, median, printGoal } from './measure.ts';
import { COMMAND, SOURCE } from './serving.ts';

const ROUNDS = 9;
const STARTS = [
  ['the command line: --version', [COMMAND, '--version']],
  ['the source: spec', [SOURCE, 'spec']],
] as const;

/** Measures a process that has nothing to do, from its start to its end, against Node itself. */
export async function benchStart(): Promise<void> {
  const out = join(tmpdir(), 'dfinery-elt-bench-start');
  const commands = [['-e', '0'], ...STARTS.map(([, command]) => command)];
  const seconds: number[][] = commands.map(() => []);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, command] of commands.entries()) {
      seconds[i]?.push((await measured([process.execPath, ...command], out)).seconds);
    }
  }
  rmSync(out);
  const [node = 0, ...ours] = seconds.map(median);
  for (const [i, [name]] of STARTS.entries()) {
    const detail = `${(ours[i] ?? 0).toFixed(2)} s against ${node.toFixed(2)} s`;
    printGoal({ name, ratio: (ours[i] ?? 0) / node, goal: ['<=', 2], detail });
  }
}
