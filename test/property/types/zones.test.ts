import { describe, expect, it } from 'vitest';
import { codecOf } from '../../../src/cells/types/column-types.ts';
import { Zone } from '../../../src/cells/types/zone.ts';
import { jsonOf } from '../../support/forms.ts';
import { Duck } from './duck.ts';

const ZONES = [
  'America/New_York',
  'America/Santiago',
  'America/Sao_Paulo',
  'America/St_Johns',
  'Asia/Kathmandu',
  'Asia/Kolkata',
  'Asia/Seoul',
  'Asia/Tehran',
  'Australia/Lord_Howe',
  'Europe/Berlin',
  'Europe/Dublin',
  'Pacific/Apia',
  'UTC',
];
const DAY = 86_400;
const QUARTER = 900;
/** Years about which the databases of Node and DuckDB agree. */
const [FIRST, LAST] = [Date.UTC(2000, 0, 1) / 1000, Date.UTC(2024, 0, 1) / 1000];

/** Wall-clock times, a quarter of an hour apart, around each change of a zone; and one of each day. */
function times(zone: Zone): string[] {
  const found = new Set<number>();
  for (let day = FIRST; day < LAST; day += DAY) {
    found.add(day + 12 * 3600);
    if (zone.offsetAt(day) === zone.offsetAt(day + DAY)) continue;
    for (let time = day - DAY; time < day + 2 * DAY; time += QUARTER) found.add(time);
  }
  return [...found].map((seconds) => new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' '));
}

describe('a local time', () => {
  const duck = new Duck();

  const instants = (sql: string) => duck.column(`strftime(timezone('UTC', ${sql}), '%Y-%m-%dT%H:%M:%S.%gZ')`);

  it.each(ZONES)('is the same instant in tables and in records (%s)', async (name) => {
    const zone = new Zone(name);
    const cells = times(zone);
    await duck.load(cells);
    expect(await instants(codecOf('datetime', zone).checkedSql('c'))).toEqual(
      cells.map((cell) => JSON.parse(jsonOf('datetime', cell, zone))),
    );
  });

  it.each([
    ['Europe/Berlin', '2026-03-29 02:30:00', '2026-03-29T01:30:00.000Z'],
    ['Europe/Berlin', '2026-10-25 02:30:00', '2026-10-25T01:30:00.000Z'],
    ['Pacific/Apia', '2011-12-30 12:00:00', '2011-12-30T22:00:00.000Z'],
    ['Asia/Seoul', '2026-01-02 03:04:05', '2026-01-01T18:04:05.000Z'],
  ])('in %s that is skipped moves forward, one that occurs twice is the later: %s', async (name, cell, instant) => {
    const zone = new Zone(name);
    await duck.load([cell]);
    expect(await instants(codecOf('datetime', zone).checkedSql('c'))).toEqual([instant]);
    expect(JSON.parse(jsonOf('datetime', cell, zone))).toBe(instant);
  });
});
