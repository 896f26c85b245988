import { once } from 'node:events';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildChild, startChild } from '../../support/processes/start-child.ts';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';

beforeAll(buildChild);

describe.each(TARGET_NAMES)('%s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
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
