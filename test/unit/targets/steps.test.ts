import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Recording, record } from '../../support/recorder.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';
import { Place, type TargetName } from '../../support/targets/place.ts';

const [D1, D2, D3] = ['2026-01-01', '2026-01-02', '2026-01-03'] as const;

/** A change of a place, and the rows before and after it. */
interface Change {
  readonly before: readonly string[];
  readonly after: readonly string[];
  prepare(place: Place): Promise<unknown>;
  work(place: Place, note: (step: string) => void): Promise<unknown>;
}

/** The length of the suppression list with which the people left. */
const LISTED = 1;
const person = (id: string, member: string) => ({ id, member, df_unified_id: `u-${member}` });
const first = (place: Place) => [place.of(D1, [person('a', 'SECRET'), person('b', 'm2')])];
const second = (place: Place) => [place.shared(D2, [{ id: 'b', n: '5' }, person('c', 'SECRET')])];

const CHANGES = {
  'a first load': {
    before: [],
    after: [`${D1} a`, `${D1} b`],
    prepare: async () => {},
    work: (place) => place.load([first(place)]),
  },
  'a load with a new column, which takes a row from the day before': {
    before: [`${D1} a`, `${D1} b`],
    after: [`${D1} a`, `${D2} b`, `${D2} c`],
    prepare: (place) => place.load([first(place)]),
    work: (place) => place.load([second(place)]),
  },
  'a purge': {
    before: [`${D1} a`, `${D2} b`, `${D2} c`],
    after: [`${D2} b`],
    prepare: (place) => place.load([first(place), second(place)]),
    work: (place, note) =>
      place.purge(['SECRET'], 'member', async () => {
        note('the people are written down');
        return LISTED;
      }),
  },
  'a prune': {
    before: [`${D1} a`, `${D2} b`, `${D2} c`],
    after: [`${D2} b`, `${D2} c`],
    prepare: (place) => place.load([first(place), second(place)]),
    work: (place) => place.prune(D2, true),
  },
} satisfies Record<string, Change>;

/** What becomes durable, in this order. A bucket has no names or bytes to sync, and else the steps of a disk. */
const STEPS: Record<TargetName, Record<keyof typeof CHANGES, readonly string[]>> = {
  duckdb: {
    'a first load': ['store events.duckdb', 'commit'],
    'a load with a new column, which takes a row from the day before': ['commit'],
    'a purge': ['the people are written down', 'commit', 'store events.duckdb'],
    'a prune': ['commit'],
  },
  parquet: {
    'a first load': ['store _dfinery.json', `store ${D1}/data.parquet`, 'store _dfinery.json'],
    'a load with a new column, which takes a row from the day before': [
      // The state names the column before a file has it. The row leaves its day before it is under another one.
      'store _dfinery.json',
      `store ${D1}/data.parquet`,
      `store ${D2}/data.parquet`,
      'store _dfinery.json',
    ],
    'a purge': [
      'the people are written down',
      'store _dfinery.json',
      `remove ${D1}/data.parquet`,
      `store ${D2}/data.parquet`,
      'store _dfinery.json',
    ],
    'a prune': ['store _dfinery.json', `remove ${D1}/data.parquet`, 'store _dfinery.json'],
  },
  delta: {
    'a first load': [`store ${D1}/part.parquet`, 'store _delta_log/0.json'],
    'a load with a new column, which takes a row from the day before': [
      `store ${D1}/part.parquet`,
      `store ${D2}/part.parquet`,
      'store _delta_log/1.json',
    ],
    'a purge': [
      'the people are written down',
      `store ${D2}/part.parquet`,
      'store _delta_log/2.json',
      `remove ${D1}/part.parquet`,
      `remove ${D1}/part.parquet`,
      `remove ${D2}/part.parquet`,
      'store _delta_log/2.checkpoint.parquet',
      'store _delta_log/_last_checkpoint',
      'remove _delta_log/0.json',
      'remove _delta_log/1.json',
    ],
    'a prune': ['store _delta_log/2.json'],
  },
};

const PASSING = /lock$|_dfinery\/(tmp|probe)|\.tmp$/;
const tell = (path: string) =>
  PASSING.test(path)
    ? undefined
    : path
        .replace(/^lake\/(events\/)?(event_date=)?/, '')
        .replace(/part-[0-9a-f-]{36}/, 'part')
        .replace(/0{19}/, '');

describe.each(['duckdb', 'parquet', 'delta', 'delta in a bucket'])('%s:', (kind) => {
  const name = kind.split(' ')[0] as TargetName;
  let s3: FakeS3 | undefined;
  let place: Place;
  beforeEach(async () => {
    s3 = kind === name ? undefined : await FakeS3.start();
    for (const [key, value] of Object.entries(s3?.env ?? {})) vi.stubEnv(key, value);
    place = new Place(name, s3);
  });
  afterEach(async () => {
    vi.unstubAllEnvs();
    await s3?.close();
  });

  async function recorded({ prepare, work }: Change): Promise<Recording> {
    await prepare(place);
    return record({ folder: dirname(place.root), bucket: s3, tell }, (note) => work(place, note));
  }

  /** The rows that a reader finds, who knows nothing of this program. */
  const rows = () =>
    place.keys().catch((error) => {
      if (/No files found|Table with name events does not exist|ENOENT/.test(String(error))) return [];
      throw error;
    });

  describe.each(Object.keys(CHANGES) as (keyof typeof CHANGES)[])('%s', (what) => {
    const change: Change = CHANGES[what];
    const { before, after, work } = change;

    it('takes its steps in order, each on the disk before the next', async () => {
      const { steps } = await recorded(change);
      // Files of one commit are stored at the same time.
      const parts = steps.filter((step) => /^store .*\/part/.test(step)).sort();
      const from = steps.findIndex((step) => parts.includes(step));
      expect(steps.toSpliced(from, parts.length, ...parts)).toEqual(STEPS[name][what]);
    });

    // Only a load into a Parquet folder is tried at once: it has several steps that a reader sees.
    const isTriedAtOnce = name === 'parquet' && what !== 'a purge' && what !== 'a prune';
    if (!isTriedAtOnce && process.env.TRIES_EVERY_END === undefined) return;
    it('loses and doubles nothing, wherever it ends, and can be run again', async () => {
      const { cuts } = await recorded(change);
      for (const cut of cuts) {
        cut.restore();
        const seen = await rows();
        if (cut.isDone) expect(seen, cut.name).toEqual(after);
        expect(new Set(seen.map((row) => row.slice(11))).size, cut.name).toBe(seen.length);
        expect([...before, ...after], cut.name).toEqual(expect.arrayContaining(seen));
        expect(seen, cut.name).toEqual(expect.arrayContaining(before.filter((row) => after.includes(row))));
        if (name !== 'parquet') expect([[...before], [...after]], cut.name).toContainEqual(seen);
        if (seen.length > 0) expect((await place.verify()).differences, cut.name).toEqual([]);
        const cursor = (await place.state())?.events.exportState?.from_date ?? '';
        expect(cursor <= ((await rows()).some((row) => row.startsWith(D2)) ? D3 : D2), cut.name).toBe(true);
        if (what === 'a purge') {
          const { rowCount: left } = await place.find(['SECRET']);
          const listed = (await place.state())?.suppressionLength;
          expect(
            [[2, undefined], [2, LISTED], ...(name === 'parquet' ? [[1, LISTED]] : []), [0, LISTED]],
            cut.name,
          ).toContainEqual([left, listed]);
        }

        await work(place, () => {});
        expect(await rows(), cut.name).toEqual(after);
        expect((await place.verify()).differences, cut.name).toEqual([]);
        if (what !== 'a purge') continue;
        expect(
          place.files().filter((path) => readFileSync(path).includes('SECRET')),
          cut.name,
        ).toEqual([]);
      }
    });
  });
});
