import { rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { addDays, type Day } from '../../../src/base/days.ts';
import fc, { shares } from '../../support/property.ts';
import { record } from '../../support/recorder.ts';
import type { Cells } from '../../support/targets/csv.ts';
import { Place, TARGET_NAMES } from '../../support/targets/place.ts';
import { query } from '../../support/targets/query.ts';

/** Worlds for each target. */
const RUNS = Number(process.env.PROPERTY_RUNS ?? 4);
const FIRST = '2026-01-01';

const row = fc.record({
  id: fc.constantFrom('a', 'b', 'c', 'd'),
  n: fc.constantFrom('1', '2.5', 'x', ''),
  late: fc.constantFrom('1', 'TRUE', '', ''),
  df_unified_id: fc.constantFrom('u1', 'u2', 'u3'),
});
const day = fc.integer({ min: 0, max: 3 });
const rows = fc.uniqueArray(row, { minLength: 0, maxLength: 4, selector: ({ id }) => id });
const days = fc.uniqueArray(fc.record({ day, rows }), { minLength: 1, maxLength: 3, selector: (one) => one.day });
/** What is done with the place, and where the run is killed: a share of its steps, undefined if it ends. */
const step = fc.record({
  work: fc.oneof(
    { weight: 6, arbitrary: fc.record({ kind: fc.constantFrom('load', 'again', 'shared'), days }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('purge' as const), person: fc.constantFrom('u1', 'u2') }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('prune' as const), day }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), day }) },
  ),
  killedAt: fc.option(shares, { freq: 3 }),
});
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never;

/** A table of another program, which reads of the place the days that changed since it did so last. */
class Mirror {
  readonly #place: Place;
  readonly #rows = new Map<string, readonly string[]>();
  #readUpTo = '';

  constructor(place: Place) {
    this.#place = place;
  }

  /** The rows of the place with their values and types, by day. */
  async rowsOfPlace(): Promise<Map<string, string[]>> {
    const typed = (name: string) =>
      `CASE WHEN ${name} IS NULL THEN 'null' ELSE typeof(${name}) || ' ' || CAST(${name} AS VARCHAR) END`;
    const sql = `SELECT event_date::VARCHAR AS d, concat_ws(' ', _key, df_unified_id, _rescued, ${typed('n')}, ${typed('late')}) AS r FROM events ORDER BY r`;
    const read = await this.#place.read(sql).catch((error) => {
      if (/No files found/.test(String(error))) return [];
      throw error;
    });
    const byDay = new Map<string, string[]>();
    for (const { d, r } of read) byDay.set(String(d), [...(byDay.get(String(d)) ?? []), String(r)]);
    return byDay;
  }

  async read(): Promise<void> {
    const receipts = [...((await this.#place.state())?.events.receipts.values() ?? [])];
    const rowsNow = await this.rowsOfPlace();
    for (const { day: changed } of receipts.filter((receipt) => receipt.changed_at > this.#readUpTo)) {
      const fresh = rowsNow.get(changed);
      if (fresh === undefined) this.#rows.delete(changed);
      else this.#rows.set(changed, fresh);
    }
    this.#readUpTo = [this.#readUpTo, ...receipts.map(({ changed_at }) => changed_at)].sort().at(-1) ?? '';
  }

  get rows(): ReadonlyMap<string, readonly string[]> {
    return this.#rows;
  }
}

/** What a user does who needs a day no longer: the next run finds that its rows are gone. */
async function removeByHand(place: Place, date: Day): Promise<void> {
  if (place.target.name === 'duckdb') await query(place.place, `DELETE FROM events WHERE event_date = '${date}'`);
  else rmSync(join(place.root, 'events', `event_date=${date}`), { recursive: true, force: true });
}

/** Does it, and checks what a load says of itself: each day whose rows differ, and none that came again unchanged. */
async function execute(place: Place, mirror: Mirror, { work }: Step): Promise<void> {
  if (work.kind === 'purge') return void (await place.purge([work.person], 'df_unified_id'));
  if (work.kind === 'prune') return void (await place.prune(addDays(FIRST, work.day), true));
  if (work.kind === 'remove') return removeByHand(place, addDays(FIRST, work.day));
  const downloads = work.days.map(({ day: back, rows: cellsOfDay }) => {
    const date = addDays(FIRST, back);
    const cells = cellsOfDay.map(({ n, late, ...others }): Cells => {
      return { ...others, ...(n !== '' && { n }), ...(late !== '' && { late }) };
    });
    return work.kind === 'shared' ? place.shared(date, cells) : place.of(date, cells);
  });
  const before = await mirror.rowsOfPlace();
  // Days that may share rows are committed one by one.
  const commits = await place.load(work.kind === 'shared' ? downloads.map((one) => [one]) : [downloads]);
  const after = await mirror.rowsOfPlace();
  const differ = [...before.keys(), ...after.keys()].filter((one) => `${before.get(one)}` !== `${after.get(one)}`);
  expect(commits.flatMap(({ daysChanged }) => daysChanged)).toEqual(expect.arrayContaining(differ));
  if (work.kind !== 'again') return;
  const [again] = await place.load([downloads]);
  expect(again?.daysChanged).toEqual([]);
  expect(await mirror.rowsOfPlace()).toEqual(after);
}

describe.each(TARGET_NAMES)('a table made of the days of %s that changed', (name) => {
  it(
    'equals the place, also after killed runs, purges and prunes',
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 2, maxLength: 5 }), async (steps) => {
          const place = new Place(name);
          // Its values are typed anew with each type that widens.
          await place.load([[place.of(addDays(FIRST, 8), [{ id: 'z', n: '1', late: '1', df_unified_id: 'u3' }])]]);
          const mirror = new Mirror(place);
          await mirror.read();
          for (const next of steps) {
            const { cuts } = await record({ folder: dirname(place.root) }, () => execute(place, mirror, next));
            if (next.killedAt !== null) cuts[Math.floor(next.killedAt * cuts.length)]?.restore();
            await mirror.read();
            // What a kill left half-way is mended by the next run.
            await place.load([[place.of(addDays(FIRST, 9), [{ id: 'other' }])]]);
            await mirror.read();
            expect(mirror.rows).toEqual(await mirror.rowsOfPlace());
          }
        }),
        { numRuns: RUNS, endOnFailure: true },
      );
    },
    RUNS * 60_000,
  );
});
