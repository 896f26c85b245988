import { describe, it } from 'vitest';
import { TARGET_NAMES } from '../support/targets/place.ts';
import { CASES, HOURS, RUNS } from './kinds.ts';
import { type Disturbance, Simulation, World } from './simulation.ts';

/** How often each happens, of fifteen runs. */
const SHARES = { none: 4, cut: 3, early_end: 1, kill: 2, kill_step: 2, full_disk: 1, remove_day: 1, forget: 1 };
const DISTURBANCES = Object.entries(SHARES).flatMap(([what, share]) =>
  Array<Disturbance>(share).fill(what as Disturbance),
);

describe.each(TARGET_NAMES)(
  'twenty-four runs into %s have every row of the truth, none twice, and nobody who was forgotten',
  (target) => {
    it.each(CASES)('$name (seed $seed)', async ({ kind, seed }) => {
      const world = await World.open(kind, seed);
      const simulation = new Simulation(world, target);
      for (let run = 0; run < RUNS; run++) {
        const disturbance = run === 7 ? 'back_up' : run === 16 ? 'restore' : world.random.pick(DISTURBANCES);
        await simulation.step(world.random.pick(HOURS), disturbance);
      }
      // Two runs in peace: the service is quiet.
      await simulation.step(24, 'none');
      await simulation.step(24, 'none');
      await simulation.verify();
    });
  },
);
