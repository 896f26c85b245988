import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';

const [D1, D2] = ['2026-01-01', '2026-01-02'] as const;

describe.each(TARGET_NAMES)('the key of a row in %s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
  });
  afterEach(() => place.close());

  it('is numbered over the parts of a day that was too large', async () => {
    const parts = [{ x: '1' }, { y: 'z' }, { x: '2' }].map((cells) => place.of(D1, [{ id: 'a', ...cells }]));
    const files = parts.flatMap((part) => part.files);
    await place.load([[{ ...parts[1], files, receipt: { ...parts[1].receipt, rows: 3 } }]]);
    expect(await place.read('SELECT _key, x::INTEGER AS x, y FROM events ORDER BY 1')).toEqual([
      { _key: 'a', x: 1, y: null },
      { _key: 'a#2', x: null, y: 'z' },
      { _key: 'a#3', x: 2, y: null },
    ]);
  });

  it('is that of its own row if the export has a column RowID', async () => {
    const rows = [
      { id: 'a', RowID: 'x' },
      { id: 'a', RowID: 'y' },
      { id: 'b', RowID: 'y' },
    ];
    await place.load([[place.of(D1, rows)]]);
    expect(await place.read('SELECT _key, "RowID_2" AS cell FROM events ORDER BY 1')).toEqual([
      { _key: 'a', cell: 'x' },
      { _key: 'a#2', cell: 'y' },
      { _key: 'b', cell: 'y' },
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
