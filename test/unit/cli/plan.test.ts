import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, dayAt } from '../../../src/base/days.ts';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';
import { query } from '../../support/targets/query.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-plan-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function plan(file: string, target = 'duckdb', more: Record<string, string> = {}) {
  const values: Record<string, string> = {
    DFINERY_BASE_URL: 'http://127.0.0.1:9',
    DFINERY_SERVICE_ID: 'service',
    DFINERY_EXPORT_TOKEN: 'token',
    DFINERY_SPOOL_DIR: join(dir, 'spool'),
    ...more,
  };
  const { code, stdout, stderr } = await runHere(['plan', target, file], { env: values });
  return { code, text: `${stderr}${stdout}` };
}

describe('plan with a target', () => {
  it('creates nothing in a file of another program, and no file where there is none', async () => {
    const file = join(dir, 'theirs.duckdb');
    await query(file, 'CREATE TABLE theirs AS SELECT 1 AS x');
    const before = readFileSync(file);
    expect((await plan(file)).code).toBe(0);
    expect(readFileSync(file).equals(before)).toBe(true);
    expect((await plan(join(dir, 'none.duckdb'))).code).toBe(0);
    expect(existsSync(join(dir, 'none.duckdb'))).toBe(false);
    expect(readdirSync(dir).filter((name) => name.includes('duckdb'))).toEqual(['theirs.duckdb']);
  });

  it.each(['parquet', 'delta'])('plans a first run of %s without a folder, and creates none', async (target) => {
    expect((await plan(join(dir, 'none'), target)).code).toBe(0);
    expect(readdirSync(dir).filter((name) => name !== 'spool')).toEqual([]);
  });

  it('says that today, which is not over, is read again, and that nothing delays the exports', async () => {
    const sim = await startTestSimulator({}, { clock: systemClock, rowsPerDay: 50 });
    const env = {
      DFINERY_BASE_URL: sim.url,
      DFINERY_SERVICE_ID: SERVICE_ID,
      DFINERY_EXPORT_TOKEN: TOKENS.export,
      DFINERY_SPOOL_DIR: join(dir, 'spool'),
      DFINERY_START_DATE: addDays(dayAt(systemClock.now()), -2),
    };
    const file = join(dir, 'events.duckdb');
    const { code } = await runHere(['sync', 'duckdb', file], { env });
    await sim.close();
    expect(code).toBe(0);
    const { stdout } = await runHere(['plan', 'duckdb', file], { env });
    expect(stdout).toContain('read again');
    expect(stdout).not.toContain('new');
    expect(stdout).toContain('None of them waits, unless others use the quota.');
    const before = ['--from', addDays(dayAt(systemClock.now()), -3), '--to', env.DFINERY_START_DATE];
    const earlier = await runHere(['plan', 'duckdb', file, ...before], { env });
    expect(earlier.stdout).toMatch(/ 1 .* new\n.* 2 .* read again\n/);
  });

  it('counts the export of user profiles while it is due', async () => {
    const sim = await startSimulator({ scenario: { events_per_day: 20 } });
    const { service_id, export_token } = sim.scenario;
    const yesterday = addDays(dayAt(systemClock.now()), -1);
    const days = { DFINERY_START_DATE: yesterday, DFINERY_END_DATE: yesterday, DFINERY_TO_DATE_INCLUSIVE: 'true' };
    const service = { DFINERY_BASE_URL: sim.url, DFINERY_SERVICE_ID: service_id, DFINERY_EXPORT_TOKEN: export_token };
    const file = join(dir, 'events.duckdb');
    const env = { ...days, ...service, DFINERY_USER_PROFILES: 'true' };
    expect((await plan(file, 'duckdb', env)).text).toContain('1 day, 2 exports, the user profiles included;');
    const { code } = await runHere(['sync', 'duckdb', file], {
      env: { ...env, DFINERY_SPOOL_DIR: join(dir, 'spool') },
    });
    await sim.close();
    expect(code).toBe(0);
    expect((await plan(file, 'duckdb', env)).text).not.toContain('profiles');
  });

  it('refuses a table with a reserved name that this program did not write', async () => {
    const file = join(dir, 'theirs.duckdb');
    await query(file, 'CREATE TABLE events AS SELECT 1 AS x');
    expect(await plan(file)).toMatchObject({ code: 2, text: expect.stringContaining('that is not ours') });
  });
});
