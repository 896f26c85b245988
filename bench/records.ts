import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median, printGoal, run } from './measure.ts';
import { prepared, ROWS } from './prepared.ts';

const HERE = import.meta.dirname;
const ROUNDS = 3;
/** Maximum memory: 150 MB, and 16 bytes for each row, whose id the scan remembers. */
const MOST_MB = 150 + (16 * ROWS) / 1e6;

/**
 * Measures the records of a day of 1,000,000 rows, from bytes to bytes, against a plain source and against DuckDB's own
 * JSON.
 */
export async function benchRecords(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'dfinery-bench-'));
  try {
    const [day] = (await prepared(1)).files;
    const [tenth] = (await prepared(10)).files;
    if (day === undefined || tenth === undefined) throw new Error('no prepared files');
    const [ours, duck, naive, peaks]: [number[], number[], number[], number[]] = [[], [], [], []];
    const speed = (file: string, seconds: unknown) => statSync(file).size / 1e6 / Number(seconds);
    for (let round = 0; round < ROUNDS; round++) {
      const json = await run([join(HERE, 'bare.js'), 'json', join(dir, 'duck.json'), day]);
      duck.push(speed(day, json.answer.seconds));
      const mine = await run([join(HERE, 'records-run.js'), 'ours', day, join(dir, 'ours.jsonl')]);
      ours.push(speed(day, mine.answer.seconds));
      peaks.push(mine.peakMb);
      const plain = await run([join(HERE, 'records-run.js'), 'naive', tenth, join(dir, 'naive.jsonl')]);
      naive.push(speed(tenth, plain.answer.seconds));
    }
    const [a, b, c] = [median(ours), median(duck), median(naive)];
    const detail = (theirs: number) => `${a.toFixed(0)} MB/s of CSV against ${theirs.toFixed(0)} MB/s`;
    printGoal({
      name: 'records, against csv-parse and JSON.stringify',
      ratio: a / c,
      wanted: ['>=', 8],
      detail: detail(c),
    });
    printGoal({ name: "records, against DuckDB's CSV to JSON", ratio: a / b, wanted: ['>=', 1.3], detail: detail(b) });
    printGoal({
      name: `records, memory of ${MOST_MB} MB`,
      ratio: median(peaks) / MOST_MB,
      wanted: ['<=', 1],
      detail: `peak ${median(peaks)} MB`,
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}
