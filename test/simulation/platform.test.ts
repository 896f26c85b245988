import { describe, expect, it } from 'vitest';
import { CASES, HOURS, RUNS } from './kinds.ts';
import { PlatformSimulation } from './platform.ts';
import { World } from './simulation.ts';

describe.each(['append_dedup', 'append'] as const)(
  'twenty-four syncs of a platform (%s) have every row of the truth',
  (mode) => {
    it.each(CASES.filter(({ kind }) => mode === 'append_dedup' || kind.append !== 'never'))(
      '$name (seed $seed)',
      async ({ kind, seed }) => {
        const world = await World.open(kind, seed);
        const platform = new PlatformSimulation(world, mode);
        for (let run = 0; run < RUNS; run++) await platform.step(world.random.pick(HOURS), world.random.chance(0.3));
        await platform.step(24, false);
        await platform.step(24, false);
        expect(platform.rows).toBeGreaterThan(50);
      },
    );
  },
);
