import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import promises from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, type Day, daysOf, startOf } from '../../../src/base/days.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { literal } from '../../../src/base/sql.ts';
import { SuppressionList } from '../../../src/erasure/suppression-list.ts';
import type { StoredReceipt } from '../../../src/table/receipts.ts';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { LeapingClock } from '../../support/clock.ts';
import { newFolder } from '../../support/new-folder.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { dayBody, exportRequest, SERVICE_ID, startTestService, TOKENS } from '../../support/service/start-service.ts';
import type { TestService } from '../../support/service/test-service.ts';
import { systemError, withCall } from '../../support/system-calls.ts';
import { Days } from '../../support/targets/days.ts';
import { query } from '../../support/targets/query.ts';

const [FIRST, LAST] = ['2026-01-08', '2026-01-11'] as const;
/** Days that the service no longer exports when the second run comes. */
const LOST = ['2026-01-13', '2026-01-14'] as const;
const NOON_AFTER = (day: Day) => startOf(addDays(day, 2)) + 12 * 3_600_000;

let dir: string;
let clock: LeapingClock;
let service: TestService;
/** The same service, which still exports every day. */
let archive: TestService;

beforeEach(async () => {
  dir = newFolder();
  clock = new LeapingClock(NOON_AFTER(LAST));
  service = await startTestService({ days: { history_days: 5 } }, { clock, rowsPerDay: 20 });
  archive = await startTestService({ days: { history_days: 300 } }, { clock, rowsPerDay: 20 });
});
afterEach(() => Promise.all([service.close(), archive.close()]));

const run = (argv: readonly string[], from = service, more: Readonly<Record<string, string>> = {}) =>
  runHere(argv, {
    clock,
    env: {
      DFINERY_BASE_URL: from.url,
      DFINERY_SERVICE_ID: SERVICE_ID,
      DFINERY_EXPORT_TOKEN: TOKENS.export,
      DFINERY_START_DATE: FIRST,
      DFINERY_ON_GAP: 'warn',
      DFINERY_HISTORY_DAYS: '5',
      DFINERY_SPOOL_DIR: join(dir, 'spool'),
      ...more,
    },
  });

/** A CSV of a day, as the provider may send it a day after the day was over. */
async function fileOf(
  day: Day,
  change: (csv: string) => string | Buffer = (csv) => csv,
  exported = dayBody(day),
): Promise<string> {
  const csv = await (await exportRequest(archive, exported)).text();
  const path = join(dir, `${day}.csv`);
  writeFileSync(path, change(csv));
  utimesSync(path, NOON_AFTER(day) / 1_000, NOON_AFTER(day) / 1_000);
  return path;
}

/** A folder that was changed before now, by the clock of the tests. */
function olderFolder(): string {
  utimesSync(dir, NOON_AFTER(LOST[0]) / 1_000, NOON_AFTER(LOST[0]) / 1_000);
  return dir;
}

/** The rows of the first lost day with the times of another. */
const ofDay = (day: Day) => (csv: string) => csv.replaceAll(LOST[0], day);
const headerOf = (csv: string) => csv.slice(0, csv.indexOf('\n') + 1);
const withCommas = (csv: string) => `${csv}${headerOf(csv).replaceAll(/[^,\n]/g, '')}`;
const utf16 = (csv: string) => Buffer.from(`\ufeff${csv}`, 'utf16le');

async function stateOf(name: string, place: string) {
  const target = STATEFUL_TARGETS.find((one) => one.name === name);
  return (await target?.maintenance(new Days().options({ address: place })))?.readState();
}

/** What of a receipt does not depend on when and how the day came. */
const factsOf = (receipt: StoredReceipt | undefined) => {
  const { day, rows, rows_stored, bytes, sha256, filters, is_over } = receipt ?? {};
  return { day, rows, rows_stored, bytes, sha256, filters, is_over };
};

describe.each(STATEFUL_TARGETS.map(({ name }) => name))('lost days in %s', (name) => {
  it('come back from files, with the receipts of a download but for the source', async () => {
    const place = join(dir, 'place');
    expect((await run(['sync', name, place])).code).toBe(0);
    clock.pass(NOON_AFTER('2026-01-18') - clock.now());
    expect((await run(['sync', name, place])).code).toBe(0);
    expect((await stateOf(name, place))?.events.exportState?.gaps).toEqual(LOST);
    for (const day of LOST) {
      const done = await run(['load', name, place, await fileOf(day), '--day', day, '--json']);
      expect([done.code, JSON.parse(done.stdout)]).toMatchObject([0, { v: 1, day, days_changed: [day] }]);
    }
    const whole = join(dir, 'whole');
    const history = { DFINERY_HISTORY_DAYS: '300' };
    expect((await run(['sync', name, whole], archive, history)).code).toBe(0);
    const [state, truth] = [await stateOf(name, place), await stateOf(name, whole)];
    expect([state?.events.exportState?.gaps, state?.events.exportState?.from_date]).toEqual([
      undefined,
      truth?.events.exportState?.from_date,
    ]);
    for (const day of daysOf(FIRST, '2026-01-17')) {
      expect(factsOf(state?.events.receipts.get(day)), day).toEqual(factsOf(truth?.events.receipts.get(day)));
    }
    expect(state?.events.receipts.get(LOST[0])).toMatchObject({
      source: 'file',
      exports: 0,
      requested_at: new Date(NOON_AFTER(LOST[0])).toISOString(),
    });
    expect((await run(['verify', name, place])).code).toBe(0);
  });
});

describe('a day from a file', () => {
  const place = () => join(dir, 'events.duckdb');
  const load = (file: string, day: Day) => run(['load', 'duckdb', place(), file, '--day', day]);
  beforeEach(async () => {
    expect((await run(['sync', 'duckdb', place()])).code).toBe(0);
    clock.pass(NOON_AFTER('2026-01-18') - clock.now());
    expect((await run(['sync', 'duckdb', place()])).code).toBe(0);
  });

  it('replaces a day that was loaded and is no longer exported, but not by fewer rows', async () => {
    const fewer = await fileOf(FIRST, (csv) => `${csv.trimEnd().split('\n').slice(0, -1).join('\n')}\n`);
    expect(await load(fewer, FIRST)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('the stored rows stay'),
    });
    expect((await load(await fileOf(FIRST), FIRST)).code).toBe(0);
    expect((await stateOf('duckdb', place()))?.events.receipts.get(FIRST)).toMatchObject({ source: 'file' });
  });

  it('is downloaded twice before the service replaces it by fewer rows', async () => {
    const twiceLast = await fileOf(LOST[0], (csv) => `${csv}${csv.trimEnd().split('\n').at(-1)}\n`);
    expect((await load(twiceLast, LOST[0])).code).toBe(0);
    const requestsBefore = archive.requests().length;
    const history = { DFINERY_HISTORY_DAYS: '300' };
    const again = await run(['sync', 'duckdb', place(), '--from', LOST[0], '--to', LOST[0]], archive, history);
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('two downloads agree') });
    expect(archive.requests().length - requestsBefore).toBe(2);
  });

  it.each(['2026-01-12', '2026-01-14'])('may have times of the day beside it, as %s: a time zone', async (day) => {
    expect((await load(await fileOf(LOST[0], ofDay(day)), LOST[0])).code).toBe(0);
  });

  it('brings back nobody on the suppression list, also if all of its rows are of these people', async () => {
    const file = await fileOf(LOST[0]);
    const [suppressionFile, key] = [join(dir, 'list.jsonl'), 'a suppression key of 32 characters'];
    const list = SuppressionList.of({ suppressionFile, suppressionKey: new Secret(key) });
    const more = { DFINERY_SUPPRESSION_FILE: suppressionFile, DFINERY_SUPPRESSION_KEY: key };
    const loadAndReadIds = async (suppressedIds: readonly string[]) => {
      await list?.add(suppressedIds, { clock: systemClock });
      const done = await run(['load', 'duckdb', place(), file, '--day', LOST[0]], service, more);
      expect(done).toMatchObject({ code: 0 });
      const sql = `SELECT DISTINCT df_unified_id AS id FROM events WHERE event_date = DATE ${literal(LOST[0])} ORDER BY 1`;
      return (await query(place(), sql)).map(({ id }) => String(id));
    };
    const [first, ...others] = await loadAndReadIds([]);
    expect(await loadAndReadIds([first])).toEqual(others);
    expect(await loadAndReadIds(others)).toEqual([]);
  });

  it.each([
    ['of a day that is loaded and still exported', async () => fileOf('2026-01-17'), '2026-01-17', '--from 2026-01-17'],
    ['of a day that is not over', async () => fileOf('2026-01-20'), '2026-01-20', 'is not over'],
    ['of two days before', async () => fileOf(LOST[0], ofDay('2026-01-11')), LOST[0], 'of another day'],
    ['of two days later', async () => fileOf(LOST[0], ofDay('2026-01-15')), LOST[0], 'of another day'],
    ['that is cut', async () => fileOf(LOST[0], (csv) => csv.slice(0, -9)), LOST[0], 'no whole export'],
    ['without the last line end', async () => fileOf(LOST[0], (csv) => csv.slice(0, -1)), LOST[0], 'no line end'],
    ['with a row of commas', async () => fileOf(LOST[0], withCommas), LOST[0], '1 row without any value'],
    ['that is no CSV', async () => fileOf(LOST[0], () => '{"data": []}\n'), LOST[0], 'JSON'],
    ['in another encoding', async () => fileOf(LOST[0], utf16), LOST[0], `${LOST[0]}.csv has text in another encoding`],
    ['without rows', async () => fileOf(LOST[0], headerOf), LOST[0], 'on_gap'],
    ['that is not there', async () => join(dir, 'none.csv'), LOST[0], 'cannot be read: there is no such file'],
    ['that is a folder', async () => olderFolder(), LOST[0], 'cannot be read: it is a folder'],
  ] as const)('is refused for a file %s', async (_, file, day, why) => {
    const before = await stateOf('duckdb', place());
    expect(await load(await file(), day)).toMatchObject({ code: 2, stderr: expect.stringContaining(why) });
    expect((await stateOf('duckdb', place()))?.events.receipts).toEqual(before?.events.receipts);
  });

  it('is refused for a file that was written before the day was over, or in the future', async () => {
    const file = await fileOf(LOST[0]);
    utimesSync(file, startOf(LOST[0]) / 1_000, startOf(LOST[0]) / 1_000 + 40_000);
    expect(await load(file, LOST[0])).toMatchObject({ code: 2, stderr: expect.stringContaining('was not over') });
    utimesSync(file, clock.now() / 1_000 + 60, clock.now() / 1_000 + 60);
    expect(await load(file, LOST[0])).toMatchObject({ code: 2, stderr: expect.stringContaining('in the future') });
  });

  it('is refused for the file of the day beside it, whose rows are stored', async () => {
    const file = await fileOf(addDays(LOST[0], -1));
    utimesSync(file, NOON_AFTER(LOST[0]) / 1_000, NOON_AFTER(LOST[0]) / 1_000);
    const sentence = `${file} is stored as the export of ${addDays(LOST[0], -1)}: name the file of ${LOST[0]}.`;
    expect(await load(file, LOST[0])).toMatchObject({ code: 2, stderr: expect.stringContaining(sentence) });
  });

  it('ends with exit 3 if the disk of the spool folder is full', async () => {
    const file = await fileOf(LOST[0]);
    const full = () => Promise.reject(systemError('ENOSPC'));
    const done = await withCall(promises, 'writeFile', full, () => load(file, LOST[0]));
    expect(done).toMatchObject({ code: 3, stderr: expect.stringMatching(/The disk of the spool folder .* is full/) });
    expect(done.stderr).not.toContain('cannot be read');
  });

  it('needs a place that a sync has loaded, and makes none', async () => {
    const lake = join(dir, 'lake');
    const done = await run(['load', 'parquet', lake, await fileOf(LOST[0]), '--day', LOST[0]]);
    expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('sync first') });
    expect(existsSync(lake)).toBe(false);
  });

  it('of one row goes into the place that the configuration names, and is told of in the singular', async () => {
    const local = { DFINERY_TARGET: 'duckdb', DFINERY_PLACE: place() };
    const file = await fileOf(LOST[1], (csv) => csv.split('\n').slice(0, 2).join('\n').concat('\n'));
    const { stdout } = await run(['load', file, '--day', LOST[1]], service, local);
    expect(stdout).toContain(`1 row of ${LOST[1]} is in ${place()}`);
  });
});
