import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { validators } from '../../connectors/validator.mjs';
import { systemClock } from '../../src/base/clock.ts';
import { silentLogger } from '../../src/base/log.ts';
import { literal } from '../../src/cells/types/sql.ts';
import { type Cells, csvOf } from '../support/targets/csv.ts';
import { verifyParquet } from '../support/targets/files.ts';
import { ParquetFixture } from '../support/targets/parquet.ts';
import { until } from '../support/wait.ts';

const KILLS = process.env.SOAK_SEEDS === undefined ? 6 : 100;
const DAYS = 4;
const ROWS = 300;

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

const dayOf = (n: number) => `2026-01-0${1 + n}`;

/** Days that are read again and again: some rows are the same, some change, columns come and widen. */
function windows(): unknown[] {
  const out: unknown[] = [];
  for (let generation = 0; generation < 3; generation++) {
    for (let day = 0; day < DAYS; day++) {
      const rows = Array.from({ length: ROWS }, (_, i): Cells => {
        const time = `${dayOf(day)} ${String(i % 24).padStart(2, '0')}:00:00.000`;
        const more = generation > 0 && i === 0 ? { [`extra_${generation}_${day}`]: 'x' } : {};
        const n = generation === 2 && i === 1 ? 'text' : String(i);
        const id = `${day}-${i}`;
        return { id, df_server_datetime: time, df_correction_datetime: time, n, df_items_k: `${i}`, ...more };
      });
      out.push(fixture.window(dayOf(day), csvOf(rows)));
    }
  }
  return out;
}

async function bundle(): Promise<string> {
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(fixture.dir, 'node_modules'));
  const outfile = join(fixture.dir, 'writer.mjs');
  const entry = join(import.meta.dirname, '../support/targets/parquet-writer.ts');
  await build({
    entryPoints: [entry],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    packages: 'external',
    plugins: [validators],
  });
  return outfile;
}

/** Globs and reads all the time; fails when a key is seen twice. */
async function readUntil(stop: AbortSignal, seen: { reads: number; doubled: number }): Promise<void> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const keys = `SELECT _key FROM read_parquet(${literal(`${fixture.root}/events/*/*.parquet`)}, union_by_name = true)`;
  while (!stop.aborted) {
    try {
      const sql = `SELECT count(*) AS n FROM (${keys} GROUP BY _key HAVING count(*) > 1)`;
      const [row] = (await connection.runAndReadAll(sql)).getRowObjectsJS();
      seen.doubled += Number(row.n);
      seen.reads++;
    } catch (error) {
      if (!/No files found/.test(String(error))) throw error;
    }
    await new Promise((resolve) => setImmediate(resolve));
  }
  connection.closeSync();
  instance.closeSync();
}

describe('a Parquet folder whose writer is killed', () => {
  it('is complete at any time, and readers never see a row twice', async () => {
    const writer = await bundle();
    const list = join(fixture.dir, 'windows.json');
    writeFileSync(list, JSON.stringify(windows()));
    const stop = new AbortController();
    const seen = { reads: 0, doubled: 0 };
    const reading = readUntil(stop.signal, seen);
    try {
      for (let kill = 0; kill < KILLS; kill++) {
        const child = spawn(process.execPath, [writer, fixture.root, list], { stdio: ['ignore', 'pipe', 'inherit'] });
        const exit = once(child, 'exit');
        await Promise.race([once(child.stdout, 'data'), exit]);
        await systemClock.sleep(20 + ((kill * 97) % 700));
        // The last one goes on until enough was read beside it.
        if (kill === KILLS - 1) await until(() => seen.reads > KILLS || child.exitCode !== null);
        child.kill('SIGKILL');
        expect(await exit).toEqual([null, 'SIGKILL']);
      }
    } finally {
      stop.abort();
      await reading;
    }
    expect(seen.doubled).toBe(0);
    expect(seen.reads).toBeGreaterThan(KILLS);
    const options = {
      place: fixture.root,
      env: () => undefined,
      spoolDir: fixture.dir,
      lockWaitMs: 10_000,
      clock: systemClock,
      logger: silentLogger,
    };
    // What the last kill left is the next writer's to finish and to remove: verify writes nothing.
    await (await fixture.openFolder()).close();
    expect(await verifyParquet(options)).toEqual([]);
    expect(fixture.files().filter((file) => /journal|tmp|part$|next$/.test(file))).toEqual([]);
    rmSync(list);
  });
});
