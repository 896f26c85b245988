import { Writable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ArrowFixture, streamedColumns } from '../../support/targets/arrow.ts';
import { type Cells, csvOf } from '../../support/targets/csv.ts';

let fixture: ArrowFixture;
beforeEach(() => {
  fixture = new ArrowFixture();
});
afterEach(() => fixture.close());

const NEW_YORK = 'America/New_York';

/** CSV with a column for each list of cells, as many rows as it has cells. */
function csvOfColumns(columns: Readonly<Record<string, readonly string[]>>, id = 'r'): string {
  const rows = Math.max(...Object.values(columns).map(({ length }) => length));
  const cells = (row: number) => Object.entries(columns).map(([name, all]) => [name, all[row] ?? '']);
  return csvOf(
    Array.from({ length: rows }, (_, row): Cells => ({ id: `${id}${row}`, ...Object.fromEntries(cells(row)) })),
  );
}

const streamed = () => Object.fromEntries(streamedColumns(fixture.out).map(({ name, values }) => [name, values]));
const typesOf = () => Object.fromEntries(streamedColumns(fixture.out).map(({ name, type }) => [name, type]));

/** What an Arrow stream, and what a table of DuckDB holds of column `x` after a day of `cells` and one of texts. */
async function widened(cells: readonly string[], timezone?: string): Promise<unknown[]> {
  const windows = [
    fixture.window('2026-01-01', csvOfColumns({ x: cells }, 'a'), timezone),
    fixture.window('2026-01-02', csvOfColumns({ x: ['text'] }, 'b'), timezone),
  ];
  await fixture.write(windows, { timezone });
  const { x } = streamed();
  await fixture.load(windows, { timezone });
  const table = await fixture.query(`SELECT x FROM events ORDER BY _key`);
  expect(x).toEqual(table.map((row) => row.x));
  return x.slice(0, -1);
}

describe('a value of an Arrow stream', () => {
  it('is a local time in every spelling and for every year', async () => {
    const t = [
      '2026.1.2 3:04',
      '2026-01-02 03:04:05.678901',
      '1969-12-31 23:59:59.5',
      '0001-01-01 00:00:00',
      '2400-01-01 00:00:00.000',
    ];
    await fixture.write([fixture.window('2026-01-01', csvOfColumns({ t }))]);
    expect(streamed().t).toEqual([
      '2026-01-02T03:04:00.000000',
      '2026-01-02T03:04:05.678901',
      '1969-12-31T23:59:59.500000',
      '0001-01-01T00:00:00.000000',
      '2400-01-01T00:00:00.000000',
    ]);
  });

  it('is an instant with a configured zone, by that zone or by the zone in the cell', async () => {
    const t = [
      '2026.1.2 3:04',
      '2026-07-02 03:04:05.678',
      '2026-07-02 03:14:05.678',
      '2026-07-02T03:04:05+09:00',
      '1960-01-01 00:00:00.000',
    ];
    const windows = [fixture.window('2026-01-01', csvOfColumns({ t, u: t.slice(1, 3) }), NEW_YORK)];
    await fixture.write(windows, { timezone: NEW_YORK });
    const expected = [
      '2026-01-02T08:04:00.000000',
      '2026-07-02T07:04:05.678000',
      '2026-07-02T07:14:05.678000',
      '2026-07-01T18:04:05.000000',
      '1960-01-01T05:00:00.000000',
    ];
    expect(streamed().t).toEqual(expected);
    expect(streamed().u).toEqual([...expected.slice(1, 3), null, null, null]);
  });

  it('is an instant also in the first hour of 1970 and just before it', async () => {
    const t = ['1970-01-01 00:30:00.000', '1970-01-01 00:45:00.000', '1969-12-31 23:30:00.000'];
    await fixture.write([fixture.window('2026-01-01', csvOfColumns({ t }), NEW_YORK)], { timezone: NEW_YORK });
    expect(streamed().t).toEqual([
      '1970-01-01T05:30:00.000000',
      '1970-01-01T05:45:00.000000',
      '1970-01-01T04:30:00.000000',
    ]);
  });

  it('is a date, a number or a list, also when quoted or long', async () => {
    const columns = {
      d: ['1969-12-31', '0001-01-01', '9999-12-31'],
      n: ['-9223372036854775808', '9223372036854775807', '-0'],
      x: ['-1.5', '1.0E-7', '123456789.12345678'],
      l: ['[ 1 , null,-9007199254740993]', '[]', '[null]'],
      q: ['[1.5,null,-2]', '[1.0E7]', '[]'],
      s: ['["a","say \\"no\\"","\\u00e9\\n안녕"]', '["",null]', '[]'],
      b: ['TRUE', 'FALSE', 'TRUE'],
    };
    await fixture.write([fixture.window('2026-01-01', csvOfColumns(columns))]);
    expect(typesOf()).toMatchObject({
      d: 'date',
      x: 'double',
      l: 'long[]',
      q: 'double[]',
      s: 'string[]',
      b: 'boolean',
    });
    expect(streamed()).toMatchObject({
      d: ['1969-12-31', '0001-01-01', '9999-12-31'],
      x: [-1.5, 1e-7, 123456789.12345678],
      l: [['1', null, '-9007199254740993'], [], [null]],
      q: [[1.5, null, -2], [1e7], []],
      s: [['a', 'say "no"', 'é\n안녕'], ['', null], []],
      b: [true, false, true],
    });
  });

  it('is rescued with the escapes of DuckDB if it does not fit its column', async () => {
    const pinned = new Map([['n', 'long' as const]]);
    const window = fixture.window('2026-01-01', csvOfColumns({ n: ['1', 'a"\\\u001f\n안녕'], other: ['', '2'] }));
    const { rescued } = await fixture.write([window], { pinned });
    expect(streamed()._rescued).toEqual([null, '{"n":"a\\"\\\\\\u001F\\n안녕","other":"2"}']);
    expect(rescued).toEqual(
      new Map([
        ['n', 1],
        ['other', 1],
      ]),
    );
  });
});

describe('a column that a later window widens to text', () => {
  it.each([
    ['booleans', ['true', 'false'], ['TRUE', 'FALSE']],
    ['whole numbers', ['9007199254740993', '-5'], ['9007199254740993', '-5']],
    ['doubles', ['1.50', '-0.0', '1.0E7', '1.0E19', '-2.0'], ['1.5', '-0.0', '10000000', '1e+19', '-2']],
    ['days', ['2026-01-02', '0001-01-01'], ['2026-01-02', '0001-01-01']],
    [
      'times',
      ['2026.1.2 3:04', '2026-01-02 03:04:05.5', '2026-01-02 03:04:05.000001', '2026-01-02 00:00:00.000'],
      ['2026-01-02 03:04:00.000', '2026-01-02 03:04:05.500', '2026-01-02 03:04:05.000001', '2026-01-02'],
    ],
    ['lists of whole numbers', ['[ 1, null ]', '[]'], ['[1,null]', '[]']],
    ['lists of doubles', ['[1.50,2,null]', '[-0.0,1.0E30]'], ['[1.5,2,null]', '[-0.0,1e30]']],
    ['lists of texts', ['["a","b\\"",null]', '["1","2"]', '[]'], ['["a","b\\"",null]', '[1,2]', '[]']],
    [
      'lists of texts or of numbers',
      ['["a","1"]', '[1,null]', '[1.50,-2]', '[null]'],
      ['["a","1"]', '[1,null]', '[1.5,-2]', '[null]'],
    ],
  ])('has the same %s as a DuckDB table', async (_, cells, texts) => {
    expect(await widened(cells)).toEqual(texts);
  });

  it('has instants in the configured zone, and the earlier of two equal local times in UTC', async () => {
    const cells = [
      '2026-07-02 12:00:00',
      '2026-07-02T03:04:05+09:00',
      '2026-11-01 01:30:00',
      '2026-11-01T01:30:00-04:00',
      '2026-07-02',
    ];
    expect(await widened(cells, NEW_YORK)).toEqual([
      '2026-07-02 12:00:00.000',
      '2026-07-01 14:04:05.000',
      '2026-11-01 01:30:00.000',
      '2026-11-01 05:30:00.000Z',
      '2026-07-02',
    ]);
  });
});

describe('a list of numbers that a later window widens', () => {
  it.each([
    ['whole numbers become doubles', ['[1,null]', '[-7]'], '[1.5]', [[1, null], [-7]]],
    ['whole numbers become texts', ['[1,null]', '[-9007199254740993]'], '["t"]', [['1', null], ['-9007199254740993']]],
    [
      'doubles become texts',
      ['[1.50,null,-0.0]', '[1.0E7,-1.0E19,1.5E20,1.0E21]'],
      '["t"]',
      [
        ['1.5', null, '-0.0'],
        ['10000000', '-10000000000000000000', '150000000000000000000', '1e+21'],
      ],
    ],
  ])('%s', async (_, cells, later, values) => {
    const windows = [
      fixture.window('2026-01-01', csvOfColumns({ x: cells }, 'a')),
      fixture.window('2026-01-02', csvOfColumns({ x: [later] }, 'b')),
    ];
    await fixture.write(windows);
    const { x } = streamed();
    expect(x).toEqual([...values, JSON.parse(later)]);
    await fixture.load(windows);
    const [{ texts }] = await fixture.query('SELECT to_json(list(x ORDER BY _key)) AS texts FROM events');
    expect(x).toEqual(JSON.parse(String(texts), (_key, value) => value));
  });
});

describe('a batch of an Arrow stream', () => {
  const csv = `df_event_detail_log_id\n${Array.from({ length: 70_000 }, (_, i) => i).join('\n')}\n`;

  it('is the last one when the run is stopped while writing it', async () => {
    const stop = new AbortController();
    /** Bytes that a run writes; `isStopped`: the run is stopped with the first large part of a batch. */
    const written = async (isStopped: boolean) => {
      let bytes = 0;
      const out = new Writable({
        write(part: Uint8Array, _, done) {
          bytes += part.length;
          if (isStopped && part.length > 65_536) stop.abort(new Error('stopped'));
          done();
        },
      });
      const windows = ['2026-01-01', '2026-01-02'].map((day) => fixture.window(day, csv));
      const run = fixture.write(windows, { out, signal: stop.signal });
      await (isStopped ? expect(run).rejects.toThrow('stopped') : run);
      return bytes;
    };
    const all = await written(false);
    expect(await written(true)).toBeLessThan(all);
  });
});
