import { readFileSync } from 'node:fs';
import { Secret } from '../src/base/secrets.ts';
import { columnEdits } from '../src/cells/columns/column-edits.ts';
import { HashKey } from '../src/cells/columns/hash-key.ts';
import { median, printGoal } from './measure.ts';
import { scan } from './scanner.ts';
import { prepare } from './shapes.ts';

const ROUNDS = 7;
const KEY = 'a hash key of at least thirty-two characters';

/**
 * Pairs of columns to hash: one with values that nearly all repeat beside one with distinct values, and two of the
 * latter.
 */
const CASES = [
  { what: 'one id a row, one that repeats', columns: ['df_event_log_id', 'referrer'] },
  { what: 'two ids a row', columns: ['df_event_log_id', 'df_unified_id'] },
] as const;

/** Measures the scan of a day with two hashed columns, against the scan of the same day without. */
export async function benchHashing(): Promise<void> {
  const [file = ''] = (await prepare('10x50000')).files;
  const body = readFileSync(file);
  const key = new HashKey(new Secret(KEY));
  const lists = [[], ...CASES.map(({ columns }) => columns)];
  const times: number[][] = lists.map(() => []);
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [i, hash] of lists.entries()) {
      const seconds = scanSeconds(body, hash, key);
      // The first round is left out, since it includes the compiler.
      if (round > 0) times[i]?.push(seconds);
    }
  }
  const [bare = 0, ...hashed] = times.map(median);
  for (const [i, { what }] of CASES.entries()) {
    const seconds = hashed[i] ?? 0;
    const detail = `${seconds.toFixed(2)} s against ${bare.toFixed(2)} s`;
    printGoal({ name: `scan with two columns hashed: ${what}`, ratio: seconds / bare, wanted: ['<=', 1.25], detail });
  }
}

function scanSeconds(body: Buffer, hash: readonly string[], key: HashKey): number {
  const began = process.cpuUsage();
  scan(body, columnEdits([], hash, key));
  const { user, system } = process.cpuUsage(began);
  return (user + system) / 1e6;
}
