import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { csvOf } from '../../support/targets/csv.ts';
import { verifyParquet } from '../../support/targets/files.ts';
import { ParquetFixture } from '../../support/targets/parquet.ts';

let fixture: ParquetFixture;
beforeEach(() => {
  fixture = new ParquetFixture();
});
afterEach(() => fixture.close());

/** The server's time, the other one, and the date that the row is filed under. */
type Timed = readonly [server: string, correction: string, date: string | null];
const NEW_YORK = 'America/New_York';

const CASES: readonly (readonly [string, string | undefined, readonly Timed[]])[] = [
  [
    'of one date',
    undefined,
    [
      ['2026-01-01 00:00:00.000', '', '2026-01-01'],
      ['2026-01-01 23:59:59.999', '', '2026-01-01'],
    ],
  ],
  [
    'with dashes',
    undefined,
    [
      ['2026-01-01 10:00:00.000', '', '2026-01-01'],
      ['2026-01-02 10:00:00', '', '2026-01-02'],
    ],
  ],
  [
    'with dots',
    undefined,
    [
      ['2026.1.1 9:05', '', '2026-01-01'],
      ['2026.12.31 23:59', '', '2026-12-31'],
    ],
  ],
  [
    'without a time',
    undefined,
    [
      ['2026-01-01', '', '2026-01-01'],
      ['2026-01-02', '', '2026-01-02'],
    ],
  ],
  [
    'in both ways',
    undefined,
    [
      ['2026.1.3 9:05', '', '2026-01-03'],
      ['2026-01-02', '', '2026-01-02'],
      ['2026-01-01 10:00:00', '', '2026-01-01'],
    ],
  ],
  [
    'of one date beside null',
    undefined,
    [
      ['2026-01-01 10:00:00', '', '2026-01-01'],
      ['null', '2026-01-02 10:00:00', '2026-01-02'],
      ['null', 'null', null],
    ],
  ],
  [
    'with dots beside null and nothing',
    undefined,
    [
      ['2026.1.1 9:05', '', '2026-01-01'],
      ['null', '2026.1.2 9:05', '2026-01-02'],
      ['', '', null],
    ],
  ],
  [
    'of one date beside words',
    undefined,
    [
      ['2026-01-01 10:00:00', '2026-01-05', '2026-01-01'],
      ['soon', '2026-01-02 10:00:00', '2026-01-02'],
      ['soon', 'later', null],
    ],
  ],
  [
    'with zones of their own',
    undefined,
    [
      ['2026-01-01T23:30:00Z', '', '2026-01-01'],
      ['2026-01-02T00:30:00+09:00', '', '2026-01-02'],
      ['2026-01-03T00:30:00-0500', '', '2026-01-03'],
    ],
  ],
  [
    'in no column but the other',
    undefined,
    [
      ['', '2026-01-01 10:00:00', '2026-01-01'],
      ['', '2026-01-02 10:00:00', '2026-01-02'],
    ],
  ],
  [
    'of one date by the clock',
    NEW_YORK,
    [
      ['2026-01-01 00:10:00.000', '', '2026-01-01'],
      ['2026-01-01 23:50:00.000', '', '2026-01-01'],
    ],
  ],
  [
    'by the clock and with zones',
    NEW_YORK,
    [
      ['2026-01-01 23:50:00.000', '', '2026-01-01'],
      ['2026-01-02T01:00:00Z', '', '2026-01-02'],
      ['2026.1.3 0:10', '', '2026-01-03'],
    ],
  ],
  [
    'that the clock skips, beside one date',
    NEW_YORK,
    [
      ['2026-03-08 02:30:00.000', '', '2026-03-08'],
      ['2026-03-09 10:00:00.000', '', '2026-03-09'],
    ],
  ],
  [
    'of one day of the zone, and of two of their own',
    'Asia/Seoul',
    [
      ['2026-03-08T20:00:00Z', '', '2026-03-08'],
      ['2026-03-09T01:00:00Z', '', '2026-03-09'],
    ],
  ],
  [
    'that the clock has twice',
    NEW_YORK,
    [
      ['2026-11-01 01:30:00.000', '', '2026-11-01'],
      ['2026-11-02 10:00:00.000', '', '2026-11-02'],
    ],
  ],
];

describe('rows are in the partition of their date as written', () => {
  const load = async (rows: readonly Timed[], timezone: string | undefined, idOf: (i: number) => string, parts = 1) => {
    const cells = rows.map(([df_server_datetime, df_correction_datetime], i) => ({
      id: idOf(i),
      memo: `${i}`,
      df_server_datetime,
      df_correction_datetime,
    }));
    const size = Math.ceil(cells.length / parts);
    const files = Array.from({ length: parts }, (_, p) => csvOf(cells.slice(p * size, (p + 1) * size), ['memo']));
    await fixture.store([fixture.window('2026-01-01', files, timezone)], { timezone });
    const found = await fixture.read('SELECT event_date::VARCHAR AS d FROM events ORDER BY CAST(memo AS INTEGER)');
    expect(found.map(({ d }) => d)).toEqual(rows.map(([, , date]) => date));
    expect((await verifyParquet(fixture.folderOptions)).filter(({ check }) => check !== 'days')).toEqual([]);
  };

  it.each(CASES)('%s', async (_, timezone, rows) => {
    await load(rows, timezone, (i) => `e${i}`);
  });

  it.each(CASES)('%s, for rows that share an id', async (_, timezone, rows) => {
    await load(rows, timezone, () => 'e');
  });

  it.each(CASES)('%s, in two parts', async (_, timezone, rows) => {
    await load(rows, timezone, (i) => `e${i}`, 2);
  });
});
