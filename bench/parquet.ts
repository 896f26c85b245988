import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { COMMAND, scratch, serving, span } from './duckdb.ts';
import { median, printGoal, run } from './measure.ts';
import { type Prepared, prepared } from './prepared.ts';

const HERE = import.meta.dirname;
const ROUNDS = 3;

async function measure(data: Prepared, goal: number): Promise<void> {
  const name = data.days.length === 1 ? 'one day' : `${data.days.length} days`;
  const [ours, bare, peak]: [number[], number[], number[]] = [[], [], []];
  await serving(data.dir, (url) =>
    scratch(url, {}, async (dir, config) => {
      for (let round = 0; round < ROUNDS; round++) {
        const target = join(dir, `${round}`);
        const sync = ['sync', 'parquet', target, '--config', config, ...span(data), '--json', '--log-level', 'warn'];
        const alone = await run([join(HERE, 'bare.js'), 'parquet', join(dir, 'bare.parquet'), ...data.files]);
        bare.push(Number(alone.answer.seconds));
        const load = await run([COMMAND, ...sync]);
        ours.push(Number(load.answer.seconds));
        peak.push(load.peakMb);
        rmSync(target, { recursive: true, force: true });
      }
    }),
  );
  const [a, b] = [median(ours), median(bare)];
  const detail = `${a.toFixed(1)} s against ${b.toFixed(1)} s, ${Math.round(data.bytes / 1e6)} MB, peak ${median(peak)} MB`;
  printGoal({ name: `export -> Parquet, ${name}`, ratio: a / b, wanted: ['<=', goal], detail });
}

/** From the first request to the last rename, against DuckDB's own COPY of the same files. */
export async function benchParquet(): Promise<void> {
  await measure(await prepared(1), 2);
  await measure(await prepared(10), 2.5);
}
