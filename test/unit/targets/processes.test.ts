import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildChild, startChild } from '../../support/processes/start-child.ts';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';

const DAYS = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
const ROWS = 3_000;
const KILLS = 5;

beforeAll(buildChild);

describe.each(TARGET_NAMES)('%s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
  });
  afterEach(() => place.close());

  const generation = (g: number) =>
    DAYS.map((day) =>
      place.of(
        day,
        Array.from({ length: ROWS + g }, (_, i) => ({ id: `${day} ${i}`, gen: `${g}`, [`only${g}`]: `${i}` })),
      ),
    );

  it('that is killed at any moment has each day whole, in one version, and takes the next run', async () => {
    await place.load([generation(0)]);
    for (let k = 0; k < KILLS; k++) {
      const batches = [1, 2].flatMap((g) => [generation(2 * k + g)]);
      const child = startChild(place, batches, 'over and over');
      await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
      await delay(100 + 250 * k);
      child.kill('SIGKILL');
      await once(child, 'exit');
      expect((await place.verify()).differences).toEqual([]);
      const found = await place.read('SELECT event_date, gen, count(*) AS n FROM events GROUP BY ALL ORDER BY ALL');
      expect(found.map(({ gen, n }) => Number(n) - Number(gen))).toEqual([ROWS, ROWS, ROWS]);
    }
    await place.load([generation(99)]);
    expect((await place.verify()).differences).toEqual([]);
    expect(await place.read('SELECT DISTINCT gen FROM events')).toEqual([{ gen: '99' }]);
  });

  it('takes days in any order from five processes at once', async () => {
    const days = Array.from({ length: 15 }, (_, i) => `2026-01-${String(i + 1).padStart(2, '0')}`);
    const batches = days.map((day) => [place.of(day, [{ id: day, [`c${day.slice(8)}`]: '1' }])]);
    const children = [0, 1, 2, 3, 4].map((at) =>
      startChild(place, batches.filter((_, i) => (i * 7) % 5 === at).reverse()),
    );
    await Promise.all(children.map(async (child) => expect(await once(child, 'exit')).toEqual([0, null])));
    expect(await place.keys()).toEqual(days.map((day) => `${day} ${day}`));
    const state = await place.state();
    expect([state?.events.exportState?.from_date, state?.events.receipts.size]).toEqual(['2026-01-16', 15]);
    expect((await place.verify()).differences).toEqual([]);
  });
});
