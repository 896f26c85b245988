import { once } from 'node:events';
import { statSync } from 'node:fs';
import { beforeAll, expect, it } from 'vitest';
import { addDays } from '../../../src/base/days.ts';
import { buildChild, startChild } from '../../support/processes/start-child.ts';
import { Place } from '../../support/targets/place.ts';

const DAYS = 300;
const ROWS = 40_000;
const MAX_KIB = 700 * 1024;
const FIRST = '2026-01-01';

const place = new Place('duckdb');
beforeAll(buildChild);

const day = (date: string) => {
  const rows = Array.from({ length: ROWS }, (_, i) => ({
    id: `${date} ${i}`,
    df_unified_id: `u${i % 997}`,
    n: `${i}`,
  }));
  return place.shared(date, rows);
};

it('a daily sync into twelve million rows takes less than 700 MB, and the file does not grow', async () => {
  await place.load([[day(FIRST)]]);
  const others = `range(1, ${DAYS}) t(i)`;
  await place.read(`INSERT INTO events SELECT i || '-' || _key, event_date + i::INT, events.* EXCLUDE (_key, event_date)
    FROM events, ${others}`);
  await place.read(`INSERT INTO _dfinery_days
    SELECT event_date + i::INT, to_date + i::INT, _dfinery_days.* EXCLUDE (event_date, to_date)
    FROM _dfinery_days, ${others}`);
  const before = statSync(place.place).size;
  // The last two days again, and a new one.
  const child = startChild(
    place,
    [-2, -1, 0].map((n) => [day(addDays(FIRST, DAYS + n))]),
  );
  let said = '';
  child.stdout.on('data', (data) => {
    said += data;
  });
  await once(child, 'exit');
  expect(Number(said)).toBeLessThan(MAX_KIB);
  expect(statSync(place.place).size).toBeLessThan(before * 1.2);
  expect(await place.read('SELECT count(*) AS n FROM events')).toEqual([{ n: `${(DAYS + 1) * ROWS}` }]);
});
