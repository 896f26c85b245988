import { rmSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { COLUMN_TYPES, type ColumnType, codecOf } from '../../../src/cells/types/column-types.ts';
import { zoneOf } from '../../../src/cells/types/zone.ts';
import type { CheckedDay } from '../../../src/extract/checked-day.ts';
import type { Sink } from '../../../src/targets/contract.ts';
import { csvOf } from '../../support/targets/csv.ts';
import type { PlaceSettings } from '../../support/targets/days.ts';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';
import { VECTORS } from '../../support/vectors.ts';

const DAYS = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;
const [D1, D2, D3] = DAYS;

describe.each(TARGET_NAMES)('the columns of %s', (name) => {
  let place: Place;
  beforeEach(() => {
    place = new Place(name);
  });

  const cells = (columns = '*') => place.read(`SELECT ${columns} FROM events ORDER BY event_date, _key`);

  describe.each(['together', 'alone'])('whose days come %s', (way) => {
    const load = (days: readonly CheckedDay[], settings?: PlaceSettings) =>
      place.load(way === 'together' ? [days] : days.map((day) => [day]), settings);
    const storedColumns = async (names: readonly string[]) =>
      (await place.state())?.events.columns.filter(({ source }) => names.includes(source));

    it('hold null as a text from their first day of text on', async () => {
      const days = [['null,1', ',null'], ['abc,x'], ['null,5', ',null']].map((rows, d) => {
        const events = rows.map((row, i) => ({ id: `${i}`, f: row.split(',')[0], g: row.split(',')[1] }));
        return place.of(DAYS[d], events);
      });
      await load(days);
      const values = (await cells('f, g')).flatMap(({ f, g }) => [f, g]);
      expect(values).toEqual([null, '1', null, null, 'abc', 'x', 'null', '5', null, 'null']);
    });

    it('get their names from day to day', async () => {
      await load([place.of(D1, [{ id: 'a', price: '1' }]), place.of(D2, [{ id: 'b', Price: '2' }])]);
      expect(await storedColumns(['price', 'Price'])).toMatchObject([
        { source: 'price', name: 'price' },
        { source: 'Price', name: 'Price_2' },
      ]);
    });

    it('are those of the first day with rows under freeze', async () => {
      const header = place.ofCsv(D1, [csvOf([], ['n', 'x'])]);
      // Where the service declares a text, the cell `null` is one.
      const later = { id: 'b', n: 'y', x: '7', m: 'new', k: '7', df_payment_method: 'null' };
      // Beside a number it is absent.
      const days = [header, place.of(D2, [{ id: 'a', n: '5', x: '' }]), place.of(D3, [later, { id: 'c', x: 'null' }])];
      await load(days, { schemaMode: 'freeze', columnTypes: new Map([['k', 'long']]) });
      const [first, second, third] = await cells('n::VARCHAR AS n, _rescued::VARCHAR AS r');
      expect([first, second.n, third.r]).toEqual([{ n: '5', r: null }, null, null]);
      expect(JSON.parse(String(second.r))).toEqual({ n: 'y', x: '7', m: 'new', df_payment_method: 'null' });
      // Beside the first columns only those that `column_types` names are added.
      const types = { n: 'long', x: null, m: null, k: 'long' };
      const stored = await storedColumns(Object.keys(types));
      expect(Object.fromEntries(stored?.map(({ source, type }) => [source, type]) ?? [])).toEqual(types);
    });
  });

  it.each([undefined, 'Asia/Seoul'])('have each type, and may become text (zone %s)', async (timezone) => {
    const columns = COLUMN_TYPES.map((type, i) => ({
      name: `c${i}`,
      type,
      cells: VECTORS.columns.find((vector) => vector.type === type && vector.timezone === undefined)?.cells ?? [],
    }));
    const most = Math.max(...columns.map(({ cells }) => cells.length));
    const rows = Array.from({ length: most }, (_, row) => ({
      id: `${row}`,
      ...Object.fromEntries(columns.map((column) => [column.name, column.cells[row] ?? ''])),
    }));
    const types = async () => {
      const [row] = await place.read(
        `SELECT ${columns.map((column) => `typeof(any_value(${column.name})) AS ${column.name}`).join(', ')} FROM events`,
      );
      return columns.map((column) => String(row[column.name]).replace('TIMESTAMP WITH TIME ZONE', 'TIMESTAMPTZ'));
    };
    place.timezone = timezone;
    await place.load([[place.of(D1, rows)]]);
    expect(await types()).toEqual(columns.map(({ type }) => codecOf(type, zoneOf(timezone)).duckdbType));
    const text = { id: 'text', ...Object.fromEntries(columns.map((column) => [column.name, 'a text'])) };
    await place.load([[place.of(D2, [text])]]);
    expect(await types()).toEqual(columns.map(() => 'VARCHAR'));
    expect((await place.verify()).differences).toEqual([]);
  });

  it('keep a name once it is given; names that are the same but for case get a number', async () => {
    await place.load([[place.of(D1, [{ id: 'a', Zone: '1', zone: '2', _key: '3', event_date: '4' }])]]);
    await place.load([[place.of(D2, [{ id: 'b', zone: '5', ZONE: '6' }])]]);
    expect(await cells('"Zone", "zone_2", "_key_2", "event_date_2", "ZONE_3"')).toEqual([
      { Zone: '1', zone_2: '2', _key_2: '3', event_date_2: '4', ZONE_3: null },
      { Zone: null, zone_2: '5', _key_2: null, event_date_2: null, ZONE_3: '6' },
    ]);
  });

  it('may have any name and any text', async () => {
    // Those without quotes stand in statements of `verify`, too.
    const names = [
      "it's",
      'a"b',
      'c;DROP TABLE events',
      '주소',
      'x.y',
      '$1',
      '{{ a }}',
      'h',
      'n',
      'day',
      'name',
      'key',
    ];
    const texts = names.map((name) => `${name}'"\n,`);
    await place.load([[place.of(D1, [{ id: 'a', ...Object.fromEntries(names.map((name, i) => [name, texts[i]])) }])]]);
    const [row] = await cells();
    expect(Object.values(row)).toEqual(expect.arrayContaining(texts));
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
  });

  it('keep a byte order mark at the beginning of a name or a text', async () => {
    const cellsOfDays = ['0', '1', '\ufeffx'];
    for (const [i, cell] of cellsOfDays.entries()) {
      await place.load([[place.of(DAYS[i], [{ id: DAYS[i], '\ufeffbom': cell }])]]);
    }
    expect(await cells('"\ufeffbom"')).toEqual(cellsOfDays.map((cell) => ({ '\ufeffbom': cell })));
    expect(await place.verify()).toEqual({ differences: [], warnings: [] });
  });

  it('that change their type are logged once that is stored, and not if it fails', async () => {
    await place.load([[place.of(D1, [{ id: 'a', n: '1' }])]]);
    const lostDownload = place.of(D2, [{ id: 'b', n: 'x' }]);
    rmSync(lostDownload.files[0].path);
    await expect(place.load([[lostDownload]])).rejects.toThrow();
    const changes = () => place.log.filter(({ event }) => event === 'schema.changed').map(({ message }) => message);
    expect(changes()).toEqual([]);
    await place.load([[place.of(D2, [{ id: 'b', n: 'x' }])]]);
    expect(changes()).toEqual([`column n changes from long to string with the rows of ${D2}`]);
  });

  it('that are declared or configured keep their type; a cell that does not fit is in _rescued', async () => {
    const columnTypes = new Map<string, ColumnType>([['n', 'long']]);
    const a = { id: 'a', n: '5', df_discount: 'much' };
    const b = { id: 'b', n: 'x', df_discount: '1.5' };
    const [{ rescuedCells }] = await place.load([[place.of(D1, [a, b])]], { columnTypes });
    expect(Object.fromEntries(rescuedCells)).toEqual({ df_discount: 1, n: 1 });
    const rows = await cells('n::VARCHAR AS n, df_discount::VARCHAR AS d, _rescued::VARCHAR AS r');
    expect(rows).toEqual([
      { n: '5', d: null, r: '{"df_discount":"much"}' },
      { n: null, d: '1.5', r: '{"n":"x"}' },
    ]);
    await place.load([[place.of(D2, [{ id: 'c' }])]]);
    expect(await cells('typeof(df_discount) AS type')).toContainEqual({ type: 'DOUBLE' });
  });

  it('that hold text stay text, whatever the service declares', async () => {
    const days = [place.of(D1, [{ id: 'a', df_discount: 'x' }]), place.of(D2, [{ id: 'b', df_discount: '1.5' }])];
    await place.load([[days[0]]], { columnTypes: new Map([['df_discount', 'string']]) });
    await place.load([[days[1]]]);
    expect(await cells('df_discount AS d')).toEqual([{ d: 'x' }, { d: '1.5' }]);
  });

  it('refuse, before a download, a configured type that stored values may not fit, or that no place has', async () => {
    const openAs = (source: string, type: ColumnType) => place.open({ columnTypes: new Map([[source, type]]) });
    await expect(openAs('df_api_version', 'double')).rejects.toThrow(/df_api_version is stored as string/);
    await place.load([[place.of(D1, [{ id: 'a', n: 'x' }])]]);
    await expect(openAs('n', 'long')).rejects.toThrow(/column n is stored as string.* into another place/);
    await (await openAs('n', 'string')).close();
    await place.loadProfiles(place.snapshot('df_external_id,df_unified_id,age\ne1,u1,x\n'));
    const columnTypes = new Map<string, ColumnType>([['age', 'long']]);
    await expect(place.open({ columnTypes, loadsProfiles: true })).rejects.toThrow(/column age is stored as string/);
    await (await place.open({ columnTypes })).close();
  });

  it('take a setting for event_name beside df_event_name as their own', async () => {
    const columnTypes = new Map<string, ColumnType>([['event_name', 'long']]);
    const rows = (value: string) => [{ id: 'a', df_event_name: 'order', event_name: value }];
    await place.load([[place.of(D1, rows('5'))], [place.of(D2, rows('6'))]], { columnTypes });
    expect(await cells('df_event_name, event_name::VARCHAR AS n')).toEqual([
      { df_event_name: 'order', n: '5' },
      { df_event_name: 'order', n: '6' },
    ]);
  });

  it('have the ids of events in a report: rows of one are counted once, each row without one', async () => {
    const rows = ['x', 'x', '', ''].map((df_event_log_id, i) => ({ id: `r${i}`, df_event_log_id }));
    await place.load([[place.of(D1, rows)]]);
    expect((await place.report()).eventCounts).toMatchObject([{ day: D1, count: 3 }]);
  });

  it('that are times may be text by configuration, and are reported by the zone of the place', async () => {
    const columnTypes = new Map<string, ColumnType>([['df_server_datetime', 'string']]);
    place.timezone = 'Asia/Kathmandu';
    const [commit] = await place.load([[place.of(D1, [{ id: 'a' }])]], { columnTypes });
    expect(commit.columnsAdded).toContain('df_server_datetime');
    expect(commit.columnsWidened).toEqual([]);
    expect((await place.report()).lastEventAt).toBe(`${D1} 10:00:00`);
  });

  it('are of one time zone, also if two first loads are under way', async () => {
    const sinks: Sink[] = [];
    for (const timezone of ['Asia/Seoul', 'UTC']) {
      place.timezone = timezone;
      sinks.push(await place.open());
    }
    const [first, second] = sinks.map((sink) => () => sink.commit([place.of(D1, [{ id: 'a' }])], place.commitInfo(D1)));
    await first();
    await expect(second()).rejects.toThrow(/^timezone is UTC/);
    for (const sink of sinks) await sink.close();
  });

  it.each(['n', 'N'])('%s and n are reported with the rescued cells of each', async (otherName) => {
    const csv = csvOf([{ id: 'a', m: '5', n: 'x' }]).replace('df_unified_id,m,n', `df_unified_id,${otherName},n`);
    await place.load([[place.ofCsv(D1, [csv])]], { columnTypes: new Map([['n', 'long']]) });
    const columns = (await place.report()).columns.filter(({ source }) => source === otherName || source === 'n');
    expect(columns.map(({ filledRows, rescuedCells }) => [filledRows, rescuedCells])).toEqual([
      [1, 0],
      [0, 1],
    ]);
  });

  it('are all counted in a report, however many they are', async () => {
    const filled = Array.from({ length: 450 }, (_, i) => i % 3 === 0);
    const cells = Object.fromEntries(filled.map((isFilled, i) => [`c${1000 + i}`, isFilled ? '1' : '']));
    await place.load([[place.of(D1, [{ id: 'a', ...cells }])]]);
    const columns = (await place.report()).columns.filter(({ source }) => source in cells);
    expect(columns.map(({ filledRows }) => filledRows === 1)).toEqual(filled);
  });

  it('are recorded with the day of the cell that changed them', async () => {
    await place.load([[place.of(D1, [{ id: 'a', n: '5', b: '' }]), place.of(D2, [{ id: 'b', n: 'x', b: 'FALSE' }])]]);
    await place.load([
      [place.of(D2, [{ id: 'b', n: 'y', b: 'true' }]), place.of(D3, [{ id: 'c', n: 'y', b: 'gold' }])],
    ]);
    const changes = (await place.state())?.events.changes.filter(({ sourceName }) => ['n', 'b'].includes(sourceName));
    expect(changes).toMatchObject([
      { sourceName: 'n', change: 'added', toType: 'long', day: D1 },
      { sourceName: 'b', change: 'added', toType: 'boolean', day: D2 },
      { sourceName: 'n', change: 'widened', toType: 'string', day: D2 },
      { sourceName: 'b', change: 'widened', toType: 'string', day: D3 },
    ]);
  });
});
