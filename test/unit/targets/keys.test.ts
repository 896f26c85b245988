import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';

const [D1, D2] = ['2026-01-01', '2026-01-02'] as const;

describe.each(TARGET_NAMES)('the key of a row in %s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
  });
  afterEach(() => place.close());

  it('is its id, with a number from the second row of the day with that id on', async () => {
    const rows = [{ id: 'a', n: '1' }, { id: 'b' }, { id: 'a', n: '2' }, { id: 'a', n: '3' }];
    await place.load([[place.of(D1, rows), place.of(D2, rows.slice(2))]]);
    expect(
      await place.read("SELECT _key, n::INTEGER AS n FROM events WHERE event_date = '2026-01-01' ORDER BY 1"),
    ).toEqual([
      { _key: 'a', n: 1 },
      { _key: 'a#2', n: 2 },
      { _key: 'a#3', n: 3 },
      { _key: 'b', n: null },
    ]);
    expect((await place.keys()).slice(4)).toEqual([`${D2} a`, `${D2} a#2`]);
  });

  it('is a hash of the cells of a row without an id, the same each time it is read', async () => {
    const rows = [{ note: 'x' }, { note: 'y' }, { note: 'x' }, { id: 'a' }];
    await place.load([[place.of(D1, rows)]]);
    const keys = await place.keys();
    const counted = (pattern: RegExp) => keys.filter((key) => pattern.test(key)).length;
    expect([counted(/ hash:[0-9a-f]{64}$/), counted(/ hash:[0-9a-f]{64}#2$/)]).toEqual([2, 1]);
    await place.load([[place.of(D1, rows.toReversed())]]);
    expect(await place.keys()).toEqual(keys);
  });

  it('is numbered over the parts of a day that was too large', async () => {
    const parts = [place.of(D1, [{ id: 'a', x: '1' }]), place.of(D1, [{ id: 'a', y: 'z' }])];
    const files = parts.flatMap((part) => part.files);
    await place.load([[{ ...parts[1], files, receipt: { ...parts[1].receipt, rows: 2 } }]]);
    expect(await place.read('SELECT _key, x::INTEGER AS x, y FROM events ORDER BY 1')).toEqual([
      { _key: 'a', x: 1, y: null },
      { _key: 'a#2', x: null, y: 'z' },
    ]);
  });

  it('distinguishes rows without an id that share an event over two neighbouring days', async () => {
    const [a, b] = [{ note: 'a' }, { note: 'b' }];
    const times = { df_server_datetime: `${D2} 00:00:00.000`, df_correction_datetime: `${D2} 00:00:00.000` };
    const rows = [a, b].map((row) => ({ ...row, ...times }));
    await place.load([[place.shared(D1, rows)], [place.shared(D2, rows.slice(1))]]);
    expect((await place.keys()).map((key) => key.slice(0, 10))).toEqual([D1, D2]);
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
  });
});
