import { appendFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { Chaos } from './chaos.ts';

const SEEDS = Number(process.env.SOAK_SEEDS ?? 1);
const FIRST = Number(process.env.SOAK_FIRST ?? 1);
const STEPS = process.env.SOAK_SEEDS === undefined ? 3 : 9;

describe('a month of faults, kills and restarts', () => {
  it.each(Array.from({ length: SEEDS }, (_, i) => FIRST + i))(
    'seed %i: the table equals the rows of the service',
    async (seed) => {
      const chaos = await Chaos.start(seed);
      try {
        await chaos.runSteps(STEPS);
        const found = await chaos.differences();
        const { missing, doubled, wrong, strange, examples } = found;
        if (process.env.SOAK_LOG !== undefined) {
          appendFileSync(
            process.env.SOAK_LOG,
            `${JSON.stringify({ seed, ...chaos.counts, missing, doubled, wrong, strange })}\n`,
          );
        }
        expect(examples.slice(0, 5)).toEqual([]);
        expect({ missing, doubled, wrong, strange }).toEqual({ missing: 0, doubled: 0, wrong: 0, strange: 0 });
        expect(await chaos.verify()).toEqual([]);
        expect(await chaos.cursor()).toBe(chaos.wanted().cursor);
        expect(chaos.counts.refused429).toBe(0);
        expect(chaos.leftovers()).toEqual([]);
      } finally {
        await chaos.close();
      }
    },
  );
});
