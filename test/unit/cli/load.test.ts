import { utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { addDays, type Day, startOf } from '../../../src/base/days.ts';
import { LeapingClock } from '../../support/clock.ts';
import { newFolder } from '../../support/new-folder.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { dayBody, exportRequest, SERVICE_ID, startTestService, TOKENS } from '../../support/service/start-service.ts';

const [FIRST, LOST, NEXT] = ['2026-01-10', '2026-01-13', '2026-01-14'];
const noonAfter = (day: Day) => startOf(addDays(day, 2)) + 12 * 3_600_000;

it('a lost day comes from its own whole file alone, and has no row of the days beside it', async () => {
  const clock = new LeapingClock(noonAfter('2026-01-11'));
  const more = { clock, rowsPerDay: 20 };
  const [service, archive] = [
    await startTestService({ days: { history_days: 4 } }, more),
    await startTestService({ days: { history_days: 300 } }, more),
  ];
  const place = join(newFolder(), 'events.duckdb');
  const [DFINERY_BASE_URL, DFINERY_EXPORT_TOKEN] = [service.url, TOKENS.export];
  const names = { DFINERY_SERVICE_ID: SERVICE_ID, DFINERY_START_DATE: FIRST, DFINERY_ON_GAP: 'warn' };
  const env = { ...names, DFINERY_BASE_URL, DFINERY_EXPORT_TOKEN, DFINERY_HISTORY_DAYS: '4' };
  const run = (...argv: string[]) => runHere(argv, { clock, env });
  const load = async (day: Day, body: object, change = (csv: string) => csv, writtenAt = noonAfter(day)) => {
    const file = join(newFolder(), 'day.csv');
    writeFileSync(file, change(await (await exportRequest(archive, body)).text()));
    utimesSync(file, writtenAt / 1_000, writtenAt / 1_000);
    const { code, stderr } = await run('load', 'duckdb', place, file, '--day', day);
    return `${code} ${stderr}`;
  };
  expect((await run('sync', 'duckdb', place)).code).toBe(0);
  clock.pass(noonAfter('2026-01-17') - clock.now());
  expect((await run('sync', 'duckdb', place)).code).toBe(0);
  const half = (csv: string) => csv.split('\n').slice(0, 9).join('\n').concat('\n');
  expect(await load(FIRST, dayBody(FIRST), half)).toMatch(/^2 .*has 8 rows of .*: the stored rows stay/);
  expect(await load(NEXT, dayBody(addDays(NEXT, 1)))).toMatch(/^2 .*is stored as the export of 2026-01-15/);
  expect(await load(LOST, dayBody(LOST), undefined, startOf(NEXT))).toMatch(/^2 .*was not over/);
  expect(await load(LOST, dayBody(LOST, '2026-01-15'))).toMatch(/^2 .*of another day/);
  expect(await load(LOST, dayBody('2026-01-12', NEXT))).toMatch(/^0 /);
  expect(await load(NEXT, dayBody(NEXT))).toMatch(/^0 /);
  expect(await run('verify', 'duckdb', place)).toMatchObject({ code: 0, stderr: '' });
  await Promise.all([service.close(), archive.close()]);
});
