import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { validators } from '../../../connectors/validator.mjs';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays } from '../../../src/base/days.ts';
import type { Window } from '../../../src/extract/window.ts';
import { verifyDuckDb } from '../../../src/targets/duckdb/read.ts';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const ROWS = 1_500;
const WINDOWS = 8;
const KILLS = 6;

let fixture: DuckDbFixture;
let script: string;
let list: string;
let windows: Window[];

beforeAll(async () => {
  fixture = new DuckDbFixture();
  script = join(fixture.dir, 'child.cjs');
  list = join(fixture.dir, 'windows.json');
  const entry = join(ROOT, 'test/support/processes/duckdb-child.ts');
  await build({
    entryPoints: [entry],
    outfile: script,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    external: ['@duckdb/*'],
    loader: { '.sql': 'text', '.wasm': 'base64' },
    plugins: [validators],
  });
  windows = Array.from({ length: WINDOWS }, (_, w) => fixture.window(addDays('2026-01-01', w), dayOf(w)));
  writeFileSync(list, JSON.stringify(windows));
});
afterAll(() => fixture.close());

/** A day whose first third is the last third of the day before, with a column of its own. */
function dayOf(w: number): string {
  const rows = Array.from({ length: ROWS }, (_, i) => ({ id: `e${w * 1_000 + i}`, w: `${w}`, [`only ${w}`]: `v${i}` }));
  return csvOf(rows);
}

const start = (windowList = list, killAfter?: string): ChildProcess =>
  spawn(
    process.execPath,
    ['-r', join(ROOT, 'test/support/processes/kill-after.cjs'), script, fixture.file, windowList],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, NODE_PATH: join(ROOT, 'node_modules'), KILL_AFTER: killAfter },
    },
  );

/** What the file must hold after its first `n` windows. */
async function holds(n: number): Promise<void> {
  expect(await verifyDuckDb({ file: fixture.file, lockWaitMs: 0, clock: systemClock })).toEqual([]);
  expect(await fixture.query('SELECT count(*)::INTEGER AS n FROM events')).toEqual([
    { n: n && (n - 1) * 1_000 + ROWS },
  ]);
  if (n === 0) return;
  const wanted = Array.from({ length: n }, (_, w) => ({ w: `${w}`, n: w === n - 1 ? ROWS : 1_000 }));
  expect(await fixture.query('SELECT w, count(*)::INTEGER AS n FROM events GROUP BY w ORDER BY w')).toEqual(wanted);
}

async function committed(): Promise<number> {
  const [{ day }] = await fixture.query("SELECT state->>'from_date' AS day FROM _dfinery_state");
  return windows.findIndex((window) => window.state.from_date === day) + 1;
}

describe('kill -9 at any instant', () => {
  it('leaves complete windows with their cursor, and the next run continues', async () => {
    let reached = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const child = start();
      const exit = once(child, 'exit');
      await Promise.race([once(child.stdout ?? child, 'data'), exit]);
      await delay((kill * 67) % 180);
      child.kill('SIGKILL');
      const [code, signal] = await exit;
      // It may have been done before.
      expect([
        [0, null],
        [null, 'SIGKILL'],
      ]).toContainEqual([code, signal]);
      const n = await committed();
      expect(n).toBeGreaterThanOrEqual(reached);
      reached = n;

      await holds(n);
    }
    const last = start();
    expect((await once(last, 'exit'))[0]).toBe(0);
    await holds(WINDOWS);
    expect(existsSync(`${fixture.file}.wal`)).toBe(false);
    expect(readdirSync(fixture.dir).filter((name) => name.startsWith('events.duckdb'))).toEqual(['events.duckdb']);
  });
});

describe('kill -9 right after a COMMIT', () => {
  it('finds rows and cursor together in the file, after any COMMIT', async () => {
    const few = join(fixture.dir, 'two-windows.json');
    writeFileSync(few, JSON.stringify(windows.slice(0, 2)));
    const reached: number[] = [];
    for (let commits = 1, code: unknown = null; code !== 0; commits++) {
      expect(commits).toBeLessThan(10);
      for (const name of [fixture.file, `${fixture.file}.wal`]) rmSync(name, { force: true });
      [code] = await once(start(few, `commit:${commits}`), 'exit');
      const n = await committed();
      await holds(n);
      reached.push(n);
    }
    expect([...new Set(reached)].filter((n) => n > 0)).toEqual([1, 2]);
    expect(reached.filter((n) => n === 2).length).toBeGreaterThan(1);
  });
});
