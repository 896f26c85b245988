import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import type { Day } from '../../src/base/days.ts';
import { query } from '../support/targets/query.ts';
import { Place } from './places.ts';
import { World } from './simulation.ts';
import { rowText } from './truth.ts';

const KILLS = 6;

let world: World;
afterEach(() => world.close());

const wanted = (day: Day, at: number): string[] =>
  world.truth
    .shown(day, at)
    .map(({ cells }) => rowText(cells))
    .sort();

describe('a Parquet folder whose writers are killed', () => {
  it('shows readers that glob only whole days, and no row twice', async () => {
    world = await World.open({ name: 'killed' }, 4);
    const place = new Place('parquet', world.dir);
    const times: number[] = [];
    const stop = new AbortController();
    const reading = readUntil(stop.signal, place, (day) => times.map((at) => JSON.stringify(wanted(day, at))));
    for (let kill = 0; kill < KILLS; kill++) {
      world.clock.pass(20 * 3_600_000);
      times.push(world.clock.now());
      const child = world.start(['sync', ...place.words], { KILL_AFTER: `any:${world.random.int(3, 25)}` });
      const timer = setTimeout(() => child.process.kill('SIGKILL'), world.random.int(400, 2_000));
      await child.ended;
      clearTimeout(timer);
    }
    times.push(world.clock.now());
    const { code, stderr } = await world.run(['sync', ...place.words]);
    stop.abort();
    expect(await reading).toBeGreaterThan(KILLS);
    expect(code, stderr).toBe(0);
    expect((await world.run(['verify', ...place.words])).code).toBe(0);
  });
});

/** Globs and reads all the time; returns how often. Columns may differ between two files while older ones are rewritten. */
async function readUntil(stop: AbortSignal, place: Place, versions: (day: Day) => readonly string[]): Promise<number> {
  let reads = 0;
  while (!stop.aborted) {
    await delay(10);
    const glob = `read_parquet('${place.path}/events/*/*.parquet', union_by_name = true, hive_types = {event_date: VARCHAR})`;
    // DuckDB opens each file twice. If one is replaced in between, it fails and its user reads again.
    const rows = await query(':memory:', `SELECT * FROM ${glob}`).catch(() => []);
    if (rows.length === 0) continue;
    const days = new Map<Day, string[]>();
    for (const { event_date, _key, _rescued, _loaded_at, ...row } of rows) {
      const day = String(event_date);
      days.set(day, [...(days.get(day) ?? []), rowText(Object.entries(row))]);
    }
    for (const [day, texts] of days)
      expect(versions(day), `${day} is no version of itself`).toContain(JSON.stringify(texts.sort()));
    reads++;
  }
  return reads;
}
