import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf } from '../../support/targets/csv.ts';
import { DuckDbFixture } from '../../support/targets/duckdb.ts';

let fixture: DuckDbFixture;
beforeEach(() => {
  fixture = new DuckDbFixture();
});
afterEach(() => fixture.close());

const typeOf = async (name: string) =>
  (
    await fixture.query(
      `SELECT data_type AS t FROM duckdb_columns() WHERE table_name = 'events' AND column_name = '${name}'`,
    )
  )[0]?.t;

/** Loads a column `x` day by day and returns its values by id. */
async function values(days: readonly (readonly string[])[]): Promise<unknown[]> {
  const windows = days.map((cells, d) =>
    fixture.window(
      `2026-01-0${d + 1}`,
      csvOf(
        cells.map((x, i) => ({ id: `${d}-${i}`, x })),
        ['x'],
      ),
    ),
  );
  await fixture.load(windows);
  return (await fixture.query('SELECT x FROM events ORDER BY _key')).map((row) => row.x);
}

describe('inferred types', () => {
  it('widen from long to double to string, with one log line each', async () => {
    expect(await values([['1', ''], ['1.5'], ['abc', '']])).toMatchObject({ length: 5 });
    expect(await typeOf('x')).toBe('VARCHAR');
    const said = fixture.log.filter((event) => event.event === 'schema.changed');
    expect(said.map(({ fields }) => fields)).toEqual([
      { column: 'x', from: 'long', to: 'double', shape: '9.9' },
      { column: 'x', from: 'double', to: 'string', shape: 'aaa' },
    ]);
  });

  it('follow from all values, whatever came first', async () => {
    expect(await values([['TRUE'], ['7']])).toEqual(['TRUE', '7']);
  });

  it('keep a list of digits that are texts a list of texts, unless all of it may be numbers', async () => {
    const lists = ['["a","1"]', '["1",null,"x"]', '[1,2.5]', '[1.0]', '[]'];
    const written = ['["a","1"]', '["1",null,"x"]', '[1,2.5]', '[1]', '[]'];
    const orders = [
      [[lists[0], lists[1]], [lists[2]], [lists[3]], [lists[4]], ['5']],
      [['5'], [lists[4]], [lists[3]], [lists[2]], [lists[0], lists[1]]],
    ];
    for (const days of orders) {
      expect((await values(days)).sort()).toEqual([...written, '5'].sort());
      fixture.close();
      fixture = new DuckDbFixture();
    }
  });

  it('do not exist while every cell is empty or null', async () => {
    expect(await typeOf('x')).toBeUndefined();
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', x: 'null' }, { id: 'b' }]))]);
    expect(await typeOf('x')).toBeUndefined();
    expect(
      await fixture.query("SELECT type, table_name AS name FROM _dfinery_columns WHERE source_name = 'x'"),
    ).toEqual([{ type: null, name: 'x' }]);
    await fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'c', x: '[1]' }]))]);
    expect(await typeOf('x')).toBe('BIGINT[]');
  });

  it('of columns of the service never widen: cells that do not fit are rescued', async () => {
    const csv = csvOf([
      { id: 'a', df_discount: 'free', df_items___proto__: '1' },
      { id: 'b', df_discount: '2' },
      { id: 'c', df_discount: 'null', df_server_datetime: 'never' },
    ]);
    const [commit] = await fixture.load([fixture.window('2026-01-01', csv)]);
    expect(commit.rescued).toEqual(
      new Map([
        ['df_discount', 1],
        ['df_server_datetime', 1],
      ]),
    );
    expect(await fixture.query('SELECT _key, df_discount AS d, _rescued FROM events ORDER BY 1')).toEqual([
      { _key: 'a', d: null, _rescued: '{"df_discount":"free"}' },
      { _key: 'b', d: 2, _rescued: null },
      { _key: 'c', d: null, _rescued: '{"df_server_datetime":"never"}' },
    ]);
    expect(fixture.log.filter((event) => event.event === 'cells.rescued')).toHaveLength(2);
  });

  it.each([undefined, 'Asia/Seoul'])(
    'widen and new columns appear in a table of many rows: zone %s',
    async (timezone) => {
      const rows = Array.from({ length: 400 }, (_, i) => ({ id: `a${i}`, n: `${i}`, day: '2026-01-05' }));
      const more = { id: 'b', n: '1.5', day: '2026-01-05 10:00:00', late: '2026-01-05 11:00:00', word: 'x' };
      const zoned = { timezone };
      await fixture.load([fixture.window('2026-01-01', csvOf(rows), timezone)], zoned);
      await fixture.load([fixture.window('2026-01-02', csvOf([more]), timezone)], zoned);
      const instant = timezone === undefined ? 'TIMESTAMP' : 'TIMESTAMP WITH TIME ZONE';
      const [types] = await fixture.query(
        'SELECT typeof(n) AS n, typeof(day) AS day, typeof(late) AS late FROM events LIMIT 1',
      );
      expect(types).toEqual({ n: 'DOUBLE', day: instant, late: instant });
      const shown = timezone === undefined ? 'day' : `timezone('${timezone}', day)`;
      expect(
        await fixture.query(
          `SELECT n, CAST(${shown} AS VARCHAR) AS day, word FROM events WHERE _key IN ('a399', 'b') ORDER BY _key`,
        ),
      ).toEqual([
        { n: 399, day: '2026-01-05 00:00:00', word: null },
        { n: 1.5, day: '2026-01-05 10:00:00', word: 'x' },
      ]);
      // What no longer fits is kept, and the rest of the row.
      const columnTypes = new Map([['n', 'long' as const]]);
      await fixture.load([fixture.window('2026-01-03', csvOf([{ id: 'c', n: '2' }]), timezone)], {
        ...zoned,
        columnTypes,
      });
      expect(
        await fixture.query(`SELECT n, word, _rescued AS r FROM events WHERE _key IN ('a399', 'b', 'c') ORDER BY _key`),
      ).toEqual([
        { n: '399', word: null, r: null },
        { n: null, word: 'x', r: '{"n":"1.5"}' },
        { n: '2', word: null, r: null },
      ]);
    },
  );
});

describe('column_types', () => {
  it('overrides the inferred type and rescues', async () => {
    const columnTypes = new Map([
      ['x', 'long' as const],
      ['y', 'string' as const],
    ]);
    await fixture.load(
      [
        fixture.window(
          '2026-01-01',
          csvOf([
            { id: 'a', x: '1', y: '2' },
            { id: 'b', x: 'q"', y: 'null' },
          ]),
        ),
      ],
      {
        columnTypes,
      },
    );
    expect(await fixture.query('SELECT x, y, _rescued AS r FROM events ORDER BY _key')).toEqual([
      { x: '1', y: '2', r: null },
      { x: null, y: 'null', r: '{"x":"q\\""}' },
    ]);
  });

  it.each([
    [['5', '1.5'], 'long', ['5', null], { x: '1.5' }],
    [['2026-01-02', '2026-01-02 03:04:05'], 'date', ['2026-01-02', null], { x: '2026-01-02 03:04:05.000' }],
    [['[1,2]', '[1.5]'], 'long[]', ['[1, 2]', null], { x: '[1.5]' }],
  ] as const)('narrows %j to %s: cells that fitted before still fit', async (cells, type, kept, rescued) => {
    await fixture.load([
      fixture.window(
        '2026-01-01',
        csvOf(
          cells.map((x, i) => ({ id: `${i}`, x })),
          ['x'],
        ),
      ),
    ]);
    const again = fixture.window('2026-01-02', csvOf([{ id: 'z', x: '' }], ['x']));
    await fixture.load([again], { columnTypes: new Map([['x', type]]) });
    const rows = await fixture.query(
      "SELECT CAST(x AS VARCHAR) AS t, _rescued FROM events WHERE _key <> 'z' ORDER BY _key",
    );
    expect(rows.map((row) => row.t)).toEqual(kept);
    expect(rows.map((row) => row._rescued && JSON.parse(String(row._rescued)))).toEqual([null, rescued]);
  });

  it.each([
    ['double', '9007199254740993', ['9007199254740993', '5']],
    ['double[]', '[9007199254740993]', ['[9007199254740993]', '[5]']],
  ] as const)('that is %s no more leaves a column that loses no digit of %s', async (type, cell, texts) => {
    const columnTypes = new Map([['x', type]]);
    const small = cell.replace('9007199254740993', '5');
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'b', x: small }]))], { columnTypes });
    await fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'a', x: cell }]))]);
    const rows = await fixture.query('SELECT CAST(to_json(x) AS VARCHAR) AS t FROM events ORDER BY _key');
    // A type with digits behind the dot would show zeros.
    expect(rows.map(({ t }) => String(t).replaceAll('"', '').replace(/\.0+$/, ''))).toEqual(texts);
  });

  it('narrows a stored column; cells that no longer fit move to _rescued', async () => {
    await fixture.load([
      fixture.window(
        '2026-01-01',
        csvOf([
          { id: 'a', x: '1', z: '7' },
          { id: 'b', x: 'q', df_discount: '?', z: '8' },
        ]),
      ),
    ]);
    await fixture.load([fixture.window('2026-01-02', csvOf([{ id: 'c', x: '3' }]))], {
      columnTypes: new Map([
        ['x', 'long' as const],
        ['z', 'string' as const],
      ]),
    });
    expect(await typeOf('x')).toBe('BIGINT');
    expect(await fixture.query('SELECT x, z, _rescued AS r FROM events ORDER BY _key')).toEqual([
      { x: '1', z: '7', r: null },
      { x: null, z: '8', r: '{"df_discount":"?","x":"q"}' },
      { x: '3', z: null, r: null },
    ]);
  });
});

describe('schema_mode', () => {
  const start = () => fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', x: '1' }]))]);

  it('freeze rescues new columns and cells that contradict their type', async () => {
    await start();
    const csv = csvOf([
      { id: 'b', x: 'abc', 'new "one"': 'v', empty: 'null', df_keyword: 'k' },
      { id: 'c', x: '5' },
    ]);
    const [commit] = await fixture.load([fixture.window('2026-01-02', csv)], { schemaMode: 'freeze' });
    expect(commit.columnsAdded).toEqual([]);
    const [row] = await fixture.query("SELECT x, _rescued AS r FROM events WHERE _key = 'b'");
    expect(row.x).toBeNull();
    expect(JSON.parse(String(row.r))).toEqual({ x: 'abc', 'new "one"': 'v', df_keyword: 'k' });
    expect(commit.rescued).toEqual(
      new Map([
        ['df_keyword', 1],
        ['new "one"', 1],
        ['x', 1],
      ]),
    );
    expect(await fixture.query("SELECT x FROM events WHERE _key = 'c'")).toEqual([{ x: '5' }]);
    const last = fixture.window('2026-01-03', csvOf([{ id: 'd', late: '7' }]));
    const [fitting] = await fixture.load([last], { schemaMode: 'freeze' });
    expect(fitting.rescued).toEqual(new Map([['late', 1]]));
  });

  it.each([
    [{ id: 'b', y: '12-ab' }, /column y is new \(first such cell: 99-aa\)/],
    [{ id: 'b', x: '1.5' }, /column x of type long would become double \(first such cell: 9\.9\)/],
    [{ id: 'b', df_server_datetime: 'x' }, /df_server_datetime of type datetime has a cell that does not fit/],
  ])('fail refuses %j', async (row, message) => {
    await start();
    const loading = fixture.load([fixture.window('2026-01-02', csvOf([row as never]))], { schemaMode: 'fail' });
    await expect(loading).rejects.toMatchObject({ exitCode: 2, message: expect.stringMatching(message) });
    expect(await fixture.query('SELECT count(*) AS n FROM events')).toEqual([{ n: '1' }]);
  });

  it('applies a pinned schema from the first window on', async () => {
    const pinned = new Map([
      ['x', 'double' as const],
      ['later', 'string[]' as const],
    ]);
    const [commit] = await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', x: '1', other: 'v' }]))], {
      schemaMode: 'freeze',
      pinned,
    });
    expect(commit.columnsAdded).toEqual(expect.arrayContaining(['x', 'later']));
    expect(await fixture.query('SELECT x, later, _rescued AS r FROM events')).toEqual([
      { x: 1, later: null, r: '{"other":"v"}' },
    ]);
    expect([await typeOf('x'), await typeOf('later')]).toEqual(['DOUBLE', 'VARCHAR[]']);
  });
});

describe('timezone', () => {
  it('makes datetimes instants, and moves a skipped local time forward', async () => {
    const zone = 'America/New_York';
    const csv = csvOf([
      { id: 'a', at: '2026-03-08 02:30:00' },
      { id: 'b', at: '2026.3.8 3:30' },
      { id: 'c', at: '2026-11-01 01:30:00' },
    ]);
    await fixture.load([fixture.window('2026-01-01', csv, zone)], { timezone: zone });
    expect(await fixture.query('SELECT epoch_ms("at") AS t, _rescued AS r FROM events ORDER BY _key')).toEqual([
      { t: String(Date.parse('2026-03-08T07:30:00Z')), r: null },
      { t: String(Date.parse('2026-03-08T07:30:00Z')), r: null },
      { t: String(Date.parse('2026-11-01T06:30:00Z')), r: null },
    ]);
    expect(await typeOf('df_server_datetime')).toBe('TIMESTAMP WITH TIME ZONE');
  });

  it('may show an instant of 9999 in the year after, alone or in one of several files', async () => {
    const [last, other] = ['9999-12-31T23:59:59Z', '2026-01-02 10:00:00'];
    const files = [csvOf([{ id: 'a', t: last }]), csvOf([{ id: 'b', t: other }])];
    await fixture.load([fixture.window('2026-01-01', files[0], 'Asia/Seoul')], { timezone: 'Asia/Seoul' });
    await fixture.load([fixture.window('2026-01-02', files, 'Asia/Seoul')], { timezone: 'Asia/Seoul' });
    expect(await fixture.query('SELECT epoch_ms(t) AS t FROM events ORDER BY 1')).toEqual(
      ['2026-01-02T01:00:00Z', last].map((time) => ({ t: String(Date.parse(time)) })),
    );
    // By the clock of the zone no text without an offset names it.
    await fixture.load([fixture.window('2026-01-03', csvOf([{ id: 'c', t: 'x' }]), 'Asia/Seoul')], {
      timezone: 'Asia/Seoul',
    });
    expect(await fixture.query('SELECT t FROM events ORDER BY 1')).toEqual([
      { t: '2026-01-02 10:00:00.000' },
      { t: '9999-12-31 23:59:59.000Z' },
      { t: 'x' },
    ]);
  });

  it('is fixed by the first load, not before', async () => {
    await (await fixture.open({ timezone: 'Asia/Seoul' })).close();
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a' }]))]);
    await expect(fixture.open({ timezone: 'Asia/Seoul' })).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/timezone is Asia\/Seoul, but .* was loaded with none/),
    });
  });
});

describe('the text null', () => {
  const texts = () => fixture.query('SELECT x FROM events ORDER BY _key');

  it('is a value of a string column, also in a window without another text', async () => {
    await fixture.load([
      fixture.window('2026-01-01', csvOf([{ id: 'a', x: 'text' }])),
      fixture.window('2026-01-02', csvOf([{ id: 'b', x: 'null' }, { id: 'c' }])),
      fixture.window(
        '2026-01-03',
        csvOf([
          { id: 'd', x: 'null' },
          { id: 'e', x: '1.50' },
        ]),
      ),
    ]);
    expect(await texts()).toEqual([{ x: 'text' }, { x: 'null' }, { x: null }, { x: 'null' }, { x: '1.5' }]);
  });

  it('is a value of a column that a pinned schema makes a string, and of no other', async () => {
    const pinned = new Map([['x', 'string' as const]]);
    await fixture.load([fixture.window('2026-01-01', csvOf([{ id: 'a', x: 'null', y: 'null' }]))], { pinned });
    expect(await texts()).toEqual([{ x: 'null' }]);
    expect(await fixture.query("SELECT type FROM _dfinery_columns WHERE source_name = 'y'")).toEqual([{ type: null }]);
  });
});
