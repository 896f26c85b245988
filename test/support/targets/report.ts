import { addDays, type Day, daysOf } from '../../../src/base/days.ts';
import { newPlaceState, type PlaceState, type TableState } from '../../../src/table/place-state.ts';
import { receiptsOf, type StoredReceipt } from '../../../src/table/receipts.ts';
import type { PlaceReport } from '../../../src/targets/contract.ts';

/** A name made of markup and of characters that turn the direction of the text. */
export const HOSTILE = `<b onclick="x">&'\u202e`;

/** A report with every kind of day, name, run and change in it. Today is 2026-02-10. */
export function exampleReport(): PlaceReport {
  const loaded = daysOf('2026-01-16', '2026-02-07');
  const names = ['df_start_session', HOSTILE, '설문 응답', null];
  const state: PlaceState = {
    events: {
      ...newPlaceState('Asia/Seoul').events,
      exportState: {
        version: 1,
        from_date: '2026-02-08',
        start_date: '2026-01-10',
        gaps: daysOf('2026-01-10', '2026-01-13'),
        to_date_inclusive: true,
      },
      receipts: receiptsOf(loaded.map(receiptOf)),
      changes: CHANGES,
    },
  };
  return {
    state,
    rows: 24_000,
    sizeBytes: 12_345_678,
    lastEventAt: '2026-02-07 23:59:59.123',
    eventCounts: loaded
      .slice(0, 18)
      .flatMap((day) => names.map((name, i) => ({ day, name, count: name === null ? 10 : 400 - i * 100 }))),
    columns: [
      {
        name: 'df_event_name',
        source: 'df_event_name',
        group: 'system',
        type: 'string',
        filledRows: 24_000,
        rescuedCells: 0,
      },
      { name: 'level', source: 'level', group: 'custom', type: 'string', filledRows: 6_000, rescuedCells: 3 },
      { name: HOSTILE, source: HOSTILE, group: 'custom', type: null, filledRows: 0, rescuedCells: 0 },
    ],
    runs: [
      run('2026-02-08T03:00:00.000Z', '2026-02-08T03:00:12.000Z', 0, null),
      run('2026-02-09T03:00:00.000Z', '2026-02-09T03:01:00.000Z', 3, 'The service is down.'),
    ],
  };
}

export const receiptOf = (day: Day): StoredReceipt => ({
  v: 1,
  day,
  to_date: day,
  requested_at: `${addDays(day, 2)}T03:00:00.000Z`,
  is_over: true,
  filters: '',
  rows: 1_000 + Number(day.slice(8)),
  rows_stored: 1_000,
  bytes: 250_000,
  sha256: '',
  exports: 1,
  suppressed: 0,
  invalid_utf8: 0,
  verified_at: `${addDays(day, 2)}T03:00:01.000Z`,
  changed_at: `${addDays(day, 2)}T03:00:02.000Z`,
});

type Change = TableState['changes'][number];
/** A change of the column `level` in the rows of a day, which were loaded a day later. */
const change = (day: Day, more: Pick<Change, 'change'> & Partial<Change>): Change => ({
  ...{ changedAt: `${addDays(day, 1)}T03:00:00.000Z`, day, sourceName: 'level' },
  ...{ fromType: null, toType: 'long' },
  ...more,
});

const CHANGES: readonly Change[] = [
  change('2026-01-31', { change: 'added', toType: 'long' }),
  change('2026-02-02', { change: 'widened', fromType: 'long', toType: 'string' }),
  change('2026-02-03', { change: 'widened', fromType: 'long', toType: 'string', sourceName: HOSTILE }),
];

const run = (began: string, ended: string, exitCode: number, cause: string | null) => ({
  began,
  ended,
  exitCode,
  cause,
  version: '1.2.3',
  rows: 1_000,
  days: 1,
  exports: 1,
  bytes: 250_000,
});
