import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { validators } from '../../../connectors/validator.mjs';
import { Place } from '../../support/targets/place.ts';
import type { Work } from '../../support/targets/writer.ts';

const ROOT = resolve(import.meta.dirname, '../../..');
const [D1, D2] = ['2026-01-01', '2026-01-02'] as const;

describe.each(['parquet', 'delta'] as const)('%s, killed after any step', (name) => {
  const place = new Place(name);
  const writer = join(place.dir, 'writer.mjs');
  const list = join(place.dir, 'work.json');

  beforeAll(async () => {
    symlinkSync(join(ROOT, 'node_modules'), join(place.dir, 'node_modules'));
    const entryPoints = [join(ROOT, 'test/support/targets/writer.ts')];
    const how = { bundle: true, format: 'esm', platform: 'node', packages: 'external' } as const;
    await build({ entryPoints, outfile: writer, ...how, plugins: [validators], loader: { '.sql': 'text' } });
  });
  afterAll(() => place.close());

  /** Runs the writer until its step of this number; returns true if it came to its end before. */
  async function ran(work: Omit<Work, 'target' | 'place' | 'spoolDir' | 'facts'>, steps: number): Promise<boolean> {
    const own = { target: name, place: place.place, spoolDir: join(place.dir, 'spool'), facts: place.facts(D1) };
    writeFileSync(list, JSON.stringify({ ...own, ...work }));
    const argv = ['-r', join(ROOT, 'test/support/processes/kill-after.cjs'), writer, list];
    const env = { ...process.env, KILL_AFTER: `any:${steps}` };
    const [code, signal] = await once(
      spawn(process.execPath, argv, { stdio: ['ignore', 'ignore', 'inherit'], env }),
      'exit',
    );
    expect(signal ?? code).toBe(signal === null ? 0 : 'SIGKILL');
    return signal === null;
  }

  /** Calls `check` after each kill of a writer that begins with what `prepare` stores, until none is killed. */
  async function afterEachKill(
    prepare: () => Promise<void>,
    work: () => Parameters<typeof ran>[0],
    check: () => Promise<void>,
  ) {
    for (let steps = 1; ; steps += process.env.SOAK === undefined ? 6 : 1) {
      expect(steps).toBeLessThan(80);
      rmSync(place.place, { recursive: true, force: true });
      await prepare();
      const isDone = await ran(work(), steps);
      await check();
      if (isDone) break;
    }
  }

  const isOnce = (keys: readonly string[]) => new Set(keys.map((key) => key.slice(11))).size === keys.length;

  it('shows no row twice, and the next run finishes the work', async () => {
    const first = () => [place.of(D1, [{ id: 'a' }, { id: 'b' }])];
    // The second day has a new column, and takes a row from the first.
    const second = () => [place.shared(D2, [{ id: 'b', n: '5' }, { id: 'c' }])];
    await afterEachKill(
      async () => void (await place.load([first()])),
      () => ({ batches: [second()] }),
      async () => {
        const seen = await place.keys();
        expect(isOnce(seen), seen.join()).toBe(true);
        await place.load([second()]);
        expect(await place.keys()).toEqual([`${D1} a`, `${D2} b`, `${D2} c`]);
        expect((await place.verify()).differences).toEqual([]);
      },
    );
  }, 240_000);

  it('keeps a first day whole or not at all, and a retried first run works', async () => {
    const first = () => [place.of(D1, [{ id: 'a' }])];
    await afterEachKill(
      async () => {},
      () => ({ batches: [first()] }),
      async () => {
        await place.load([first()]);
        expect(await place.keys()).toEqual([`${D1} a`]);
        expect((await place.verify()).differences).toEqual([]);
      },
    );
  }, 240_000);

  it('removes people with every byte, once the next command has finished the purge', async () => {
    const days = () => [
      place.of(D1, [
        { id: 'a', member: 'SECRET', df_unified_id: 'u1' },
        { id: 'b', member: 'm2', df_unified_id: 'u2' },
      ]),
      place.of(D2, [{ id: 'c', member: 'SECRET', df_unified_id: 'u1' }]),
    ];
    await afterEachKill(
      async () => void (await place.load([days()])),
      () => ({ batches: [], purge: ['SECRET'] }),
      async () => {
        const before = (await place.find(['SECRET'])).rows;
        if (name === 'parquet') expect([0, 2]).toContain(before);
        await place.purge(['SECRET']);
        expect(await place.keys()).toEqual([`${D1} b`]);
        expect(place.files().filter((path) => readFileSync(path).includes('SECRET'))).toEqual([]);
        expect((await place.verify()).differences).toEqual([]);
      },
    );
  }, 240_000);
});
