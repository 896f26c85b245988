import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { query } from '../../support/targets/query.ts';

let fixture: CliFixture;
beforeEach(async () => {
  fixture = await CliFixture.start();
});
afterEach(() => fixture.close());
const at = (name: string) => join(fixture.dir, name);

async function plan(file: string, target = 'duckdb', more: Record<string, string> = {}) {
  const variables = { ...fixture.variables, DFINERY_BASE_URL: 'http://127.0.0.1:9', ...more };
  const { code, stdout, stderr } = await fixture.run(['plan', target, file], variables);
  return { code, text: `${stderr}${stdout}` };
}

describe('plan with a target', () => {
  it('creates nothing in a file of another program, and no file where there is none', async () => {
    const file = at('theirs.duckdb');
    await query(file, 'CREATE TABLE theirs AS SELECT 1 AS x');
    const before = readFileSync(file);
    expect((await plan(file)).code).toBe(0);
    expect(readFileSync(file).equals(before)).toBe(true);
    expect((await plan(at('none.duckdb'))).code).toBe(0);
    expect(existsSync(at('none.duckdb'))).toBe(false);
    expect(readdirSync(fixture.dir).filter((name) => name.includes('duckdb'))).toEqual(['theirs.duckdb']);
  });

  it.each(['parquet', 'delta'])('plans a first run of %s without a folder, and creates none', async (target) => {
    expect((await plan(at('none'), target)).code).toBe(0);
    expect(readdirSync(fixture.dir).filter((name) => name !== 'spool')).toEqual([]);
  });

  it('says that today, which is not over, is read again, and that nothing delays the exports', async () => {
    const { file } = fixture;
    const env = { ...fixture.variables, DFINERY_START_DATE: daysBack(2) };
    expect((await fixture.run(['sync', 'duckdb', file], env)).code).toBe(0);
    const { stdout } = await fixture.run(['plan', 'duckdb', file], env);
    expect(stdout).toContain('read again');
    expect(stdout).not.toContain('new');
    expect(stdout).toContain('None of them waits, unless others use the quota.');
    const before = ['--from', daysBack(3), '--to', daysBack(2)];
    const wrong = await fixture.run(['plan', 'duckdb', file], {
      ...env,
      DFINERY_COLUMN_TYPES: '{"df_api_version":"long"}',
    });
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('df_api_version is stored as string')]);
    const earlier = await fixture.run(['plan', 'duckdb', file, ...before], env);
    expect(earlier.stdout).toMatch(/ 1 .* new\n.* 2 .* read again\n/);
  });

  it('counts the export of user profiles while it is due', async () => {
    const sim = await startSimulator({ scenario: { events_per_day: 20 } });
    const { service_id, export_token } = sim.scenario;
    const days = { DFINERY_START_DATE: daysBack(1), DFINERY_END_DATE: daysBack(1), DFINERY_TO_DATE_INCLUSIVE: 'true' };
    const service = { DFINERY_BASE_URL: sim.url, DFINERY_SERVICE_ID: service_id, DFINERY_EXPORT_TOKEN: export_token };
    const { file } = fixture;
    const env = { ...days, ...service, DFINERY_USER_PROFILES: 'true' };
    expect((await plan(file, 'duckdb', env)).text).toContain('1 day, 2 exports, the user profiles included;');
    const { code } = await fixture.run(['sync', 'duckdb', file], { ...fixture.variables, ...env });
    await sim.close();
    expect(code).toBe(0);
    expect((await plan(file, 'duckdb', env)).text).not.toContain('profiles');
  });

  it('refuses a table with a reserved name that this program did not write', async () => {
    const file = at('theirs.duckdb');
    await query(file, 'CREATE TABLE events AS SELECT 1 AS x');
    expect(await plan(file)).toMatchObject({ code: 2, text: expect.stringContaining('that is not ours') });
  });
});
