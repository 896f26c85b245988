import { once } from 'node:events';
import { createWriteStream, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printGoal, run } from './measure.ts';

const HERE = import.meta.dirname;
const DESTINATION = join(HERE, '../bin/destination-dfinery.js');
const CATALOG = {
  streams: [
    {
      stream: {
        name: 'people',
        json_schema: { properties: { external_id: { type: 'string' } } },
        supported_sync_modes: ['full_refresh'],
      },
      sync_mode: 'full_refresh',
      destination_sync_mode: 'append',
    },
  ],
};

/** Stages a million ids by the Airbyte destination; memory must not grow with their number. */
export async function benchStage(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'dfinery-bench-'));
  try {
    const [small, large] = [await stageOf(dir, 100_000), await stageOf(dir, 1_000_000)];
    printGoal({
      name: 'a million ids staged, memory against 100,000',
      ratio: large.peakMb / small.peakMb,
      wanted: ['<=', 1.5],
      detail: `peak ${large.peakMb} MB against ${small.peakMb} MB, ${large.seconds.toFixed(1)} s`,
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

const stageOf = (dir: string, ids: number) => write(dir, { base_url: 'http://127.0.0.1:9', dry_run: true }, ids);

async function write(dir: string, more: object, ids: number): ReturnType<typeof run> {
  const [config, catalog, input] = ['config.json', 'catalog.json', 'input.jsonl'].map((name) => join(dir, name));
  const all = { service_id: 'bench', import_token: 'bench-import', max_deletions_per_sync: ids, ...more };
  writeFileSync(config, JSON.stringify(all));
  writeFileSync(catalog, JSON.stringify(CATALOG));
  await writeInput(input, ids);
  return run([DESTINATION, 'write', '--config', config, '--catalog', catalog], {}, openSync(input, 'r'));
}

async function writeInput(path: string, ids: number): Promise<void> {
  const out = createWriteStream(path);
  for (let i = 0; i < ids; i++) {
    const record = { stream: 'people', emitted_at: 1_700_000_000_000, data: { external_id: `person-${i}` } };
    if (!out.write(`${JSON.stringify({ type: 'RECORD', record })}\n`)) await once(out, 'drain');
  }
  out.end();
  await once(out, 'close');
}
