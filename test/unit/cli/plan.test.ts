import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { runHere } from '../../support/processes/command-line.ts';
import { query } from '../../support/targets/query.ts';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'dfinery-plan-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

async function plan(file: string, target = 'duckdb', ...more: string[]) {
  const values: Record<string, string> = {
    DFINERY_BASE_URL: 'http://127.0.0.1:9',
    DFINERY_SERVICE_ID: 'service',
    DFINERY_EXPORT_TOKEN: 'token',
    DFINERY_SPOOL_DIR: join(dir, 'spool'),
  };
  const { code, stdout, stderr } = await runHere(['plan', `--${target}`, file, ...more], { env: values });
  return { code, text: `${stderr}${stdout}` };
}

describe('plan with a target', () => {
  it('creates nothing in a file of another program, and no file where there is none [R266]', async () => {
    const file = join(dir, 'theirs.duckdb');
    await query(file, 'CREATE TABLE theirs AS SELECT 1 AS x');
    const before = readFileSync(file);
    expect((await plan(file)).code).toBe(0);
    expect(readFileSync(file).equals(before)).toBe(true);
    expect((await plan(join(dir, 'none.duckdb'))).code).toBe(0);
    expect(existsSync(join(dir, 'none.duckdb'))).toBe(false);
    expect(readdirSync(dir).filter((name) => name.includes('duckdb'))).toEqual(['theirs.duckdb']);
  });

  it.each(['parquet', 'delta'])('plans a first run of %s without a folder, and creates none [R381]', async (target) => {
    expect((await plan(join(dir, 'none'), target)).code).toBe(0);
    expect(readdirSync(dir).filter((name) => name !== 'spool')).toEqual([]);
  });

  it('is of one target', async () => {
    const sentence = '--duckdb and --parquet are both given: the plan is of one target.';
    const given = await plan(join(dir, 'a'), 'duckdb', '--parquet', join(dir, 'b'));
    expect(given).toEqual({ code: 2, text: expect.stringContaining(sentence) });
  });

  it('refuses a table with a reserved name that this program did not write', async () => {
    const file = join(dir, 'theirs.duckdb');
    await query(file, 'CREATE TABLE events AS SELECT 1 AS x');
    expect(await plan(file)).toMatchObject({ code: 2, text: expect.stringContaining('that is not ours') });
  });
});
