import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DATETIME_DASH, DATETIME_GAP } from '../../../src/cells/types/evidence.ts';
import { cellFits, TYPES } from '../../../src/cells/types/index.ts';
import { Zone } from '../../../src/cells/types/zone.ts';
import { sqlWall } from '../../../src/cells/types/zone-sql.ts';
import { jsonOf } from '../../support/evidence.ts';
import fc from '../../support/property.ts';
import { Duck } from './duck.ts';

/** The first five differ between Node 20.20.2 and DuckDB 1.5.6. */
const ZONES = [
  'America/Vancouver',
  'America/Edmonton',
  'America/Inuvik',
  'Africa/Casablanca',
  'Africa/El_Aaiun',
  'America/New_York',
  'America/Sao_Paulo',
  'Asia/Gaza',
  'Asia/Seoul',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Europe/Dublin',
  'Pacific/Apia',
  'UTC',
];
const HOUR = 3600;
const YEARS = [Date.UTC(1970, 0, 1) / 1000, Date.UTC(2100, 0, 1) / 1000] as const;

/** What the runtime's clock of a zone shows at an instant, as text: asked independently of `Zone`. */
function clockOf(name: string) {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: name, dateStyle: 'short', timeStyle: 'medium' });
  return (seconds: number) => format.format(seconds * 1000).replace('T', ' ');
}

/** Wall-clock times around the changes of a zone, and at any other time. */
function times(zone: Zone): fc.Arbitrary<string> {
  const changes = zone.spans(...YEARS).slice(1);
  const ordinary = fc.integer({ min: YEARS[0], max: YEARS[1] });
  if (changes.length === 0) return ordinary.map(wallText);
  const changing = fc
    .tuple(fc.constantFrom(...changes), fc.integer({ min: -3 * HOUR, max: 3 * HOUR }))
    .map(([{ from, offset }, off]) => from + offset + off);
  return fc.oneof(changing, ordinary).map(wallText);
}

const wallText = (seconds: number): string => new Date(seconds * 1000).toISOString().slice(0, 19).replace('T', ' ');

describe('a time zone', () => {
  let duck: Duck;
  beforeAll(async () => {
    duck = await Duck.open();
  });
  afterAll(() => duck.close());

  const micros = (sql: string) => duck.column(`CAST(epoch_us(${sql}) AS VARCHAR)`);

  for (const name of ZONES) {
    it(`maps a local time to the same instant in every engine (${name})`, async () => {
      const zone = new Zone(name);
      const shown = clockOf(name);
      await fc.assert(
        fc.asyncProperty(fc.array(times(zone), { minLength: 200, maxLength: 200 }), async (cells) => {
          const sorted = cells.toSorted();
          const narrow = zone.within(sorted[0].replace(' ', 'T'), sorted[sorted.length - 1].replace(' ', 'T'));
          await duck.load(cells);
          const isSkipped = (cell: string) => !cellFits('datetime', Buffer.from(cell), 0, cell.length, zone);
          const expected = cells.map((cell) => {
            if (isSkipped(cell)) return null;
            return String(Date.parse(JSON.parse(jsonOf('datetime', cell, zone))) * 1000);
          });
          cells.forEach((cell, i) => {
            const seconds = Number(expected[i]) / 1_000_000;
            if (expected[i] !== null) expect(shown(seconds)).toBe(cell);
            // An hour before, no instant shows the same time: of two the earlier is meant.
            if (expected[i] !== null) expect(shown(seconds - HOUR)).not.toBe(cell);
          });
          for (const one of [zone, narrow]) {
            expect(await micros(TYPES.datetime.sql('c', one))).toEqual(expected);
            const clean = TYPES.datetime.sqlClean('c', DATETIME_DASH, one);
            expect(await micros(clean)).toEqual(expected);
          }
        }),
        { numRuns: 1 },
      );
    });

    it(`shows an instant as the same local time in every engine (${name})`, async () => {
      const zone = new Zone(name);
      const shown = clockOf(name);
      await fc.assert(
        fc.asyncProperty(fc.array(times(zone), { minLength: 200, maxLength: 200 }), async (cells) => {
          const instants = cells.map((cell) => Date.parse(`${cell.replace(' ', 'T')}Z`) / 1000);
          await duck.load(instants.map(String));
          const instant = 'make_timestamptz(CAST(c AS BIGINT) * 1000000)';
          const [least, most] = [Math.min(...instants), Math.max(...instants)];
          const iso = (seconds: number) => new Date(seconds * 1000).toISOString();
          for (const one of [zone, zone.within(iso(least), iso(most))]) {
            expect(await duck.column(`strftime(${sqlWall(instant, one)}, '%Y-%m-%d %H:%M:%S')`)).toEqual(
              instants.map(shown),
            );
            const texts = await duck.column(TYPES.datetime.sqlText(instant, one));
            expect(texts).toEqual(
              instants.map((seconds) => {
                const text = shown(seconds);
                const isSecond = zone.toUtc(Date.parse(`${text.replace(' ', 'T')}Z`) / 1000) !== seconds;
                return isSecond ? `${iso(seconds).replace('T', ' ')}` : `${text}.000`;
              }),
            );
          }
        }),
        { numRuns: 1 },
      );
    });
  }

  it('finds every local time that a zone skips, also in a column with a known range', async () => {
    const zone = new Zone('Europe/Berlin');
    await duck.load(['2026-03-29 01:59:59', '2026-03-29 02:00:00', '2026-03-29 02:59:59', '2026-03-29 03:00:00']);
    for (const one of [zone, zone.within('2026-03-29T01:59:59.000', '2026-03-29T03:00:00.000')]) {
      const texts = await duck.column(`CAST(${TYPES.datetime.sql('c', one)} IS NULL AS BOOLEAN)`);
      expect(texts).toEqual([false, true, true, false]);
    }
    expect(zone.evidenceOf(Date.UTC(2026, 2, 29, 2) / 1000)).toBe(DATETIME_GAP);
  });

  it('repeats the changes of 2100 to 2499 in all later years', async () => {
    const zone = new Zone('America/New_York');
    const shown = clockOf('America/New_York');
    await duck.load(['2537-07-01 12:00:00', '9998-01-01 12:00:00', '9998-07-01 12:00:00']);
    const instants = await micros(TYPES.datetime.sql('c', zone));
    expect(instants.map((instant) => shown(Number(instant) / 1_000_000))).toEqual([
      '2537-07-01 12:00:00',
      '9998-01-01 12:00:00',
      '9998-07-01 12:00:00',
    ]);
    const far = zone.within('9998-07-01T00:00:00', '9998-07-02T00:00:00');
    expect((await micros(TYPES.datetime.sql('c', far)))[2]).toBe(instants[2]);
  });
});
