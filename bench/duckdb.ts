import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { median, printGoal, run } from './measure.ts';
import { type Prepared, prepared } from './prepared.ts';

const HERE = import.meta.dirname;
export const COMMAND = join(HERE, '..', 'bin', 'dfinery-elt.js');
const ROUNDS = 3;

/** Serves prepared files from a process of its own while `work` runs. */
export async function serving<T>(dir: string, work: (url: string) => Promise<T>, latencyMs = 0): Promise<T> {
  const child = spawn(process.execPath, [join(HERE, 'serve.js'), dir, `${latencyMs}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      return await work((JSON.parse(line) as { url: string }).url);
    }
    throw new Error('the server did not start');
  } finally {
    child.kill();
  }
}

/** A scratch folder with a configuration in it; removed afterwards. */
export async function scratch<T>(
  url: string,
  extra: object,
  work: (dir: string, config: string) => Promise<T>,
): Promise<T> {
  const dir = mkdtempSync(join(tmpdir(), 'dfinery-bench-'));
  const config = join(dir, 'config.json');
  const value = { base_url: url, service_id: 'bench', export_token: 'bench-export', spool_dir: dir, ...extra };
  writeFileSync(config, JSON.stringify({ exports_per_hour: 100_000, ...value }));
  try {
    return await work(dir, config);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

export const span = ({ days }: Prepared) => ['--from', days[0] ?? '', '--to', days.at(-1) ?? ''];

async function measure(data: Prepared, goals: { first: number; merge: number }): Promise<void> {
  const name = data.days.length === 1 ? 'one day' : `${data.days.length} days`;
  const [first, merge, bare, peak]: [number[], number[], number[], number[]] = [[], [], [], []];
  await serving(data.dir, (url) =>
    scratch(url, {}, async (dir, config) => {
      for (let round = 0; round < ROUNDS; round++) {
        const file = join(dir, `${round}.duckdb`);
        const sync = ['sync', 'duckdb', file, '--config', config, ...span(data), '--json', '--log-level', 'warn'];
        bare.push(
          Number((await run([join(HERE, 'bare.js'), 'table', join(dir, 'bare.duckdb'), ...data.files])).answer.seconds),
        );
        const load = await run([COMMAND, ...sync]);
        first.push(Number(load.answer.seconds));
        peak.push(load.peakMb);
        merge.push(Number((await run([COMMAND, ...sync])).answer.seconds));
        rmSync(file, { force: true });
      }
    }),
  );
  const base = median(bare);
  const mb = Math.round(data.bytes / 1e6);
  const detail = (seconds: number) =>
    `${seconds.toFixed(1)} s against ${base.toFixed(1)} s, ${mb} MB, peak ${median(peak)} MB`;
  printGoal({
    name: `export -> DuckDB, ${name}`,
    ratio: median(first) / base,
    wanted: ['<=', goals.first],
    detail: detail(median(first)),
  });
  printGoal({
    name: `full re-read, ${name}`,
    ratio: median(merge) / base,
    wanted: ['<=', goals.merge],
    detail: detail(median(merge)),
  });
}

/** From the first request to the commit, against DuckDB's own CREATE TABLE AS over the same files. */
export async function benchDuckDb(): Promise<void> {
  await measure(await prepared(10), { first: 1.25, merge: 1.6 });
  await measure(await prepared(1), { first: 1.5, merge: 1.9 });
}
