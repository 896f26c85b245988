import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import schema from '../../../schemas/source-config.json' with { type: 'json' };
import summarySchema from '../../../schemas/summary.json' with { type: 'json' };
import { daysBetween } from '../../../src/base/days.ts';
import { runHere } from '../../support/processes/command-line.ts';

const folder = mkdtempSync(join(tmpdir(), 'dfinery-configuration-'));
const here = process.cwd();
afterEach(() => process.chdir(here));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const REQUIRED = {
  DFINERY_BASE_URL: 'http://127.0.0.1:1',
  DFINERY_SERVICE_ID: 'from-environment',
  DFINERY_EXPORT_TOKEN: 'canary-token-1',
  DFINERY_SPOOL_DIR: folder,
};

const run = (env: Readonly<Record<string, string>>, ...argv: string[]) => runHere(argv, { env });

describe('the configuration of the command line', () => {
  it('comes from the environment, which overrides the file; plan --json shows the origin of each key', async () => {
    process.chdir(folder);
    const alone = await run(REQUIRED, 'plan', '--json');
    expect(alone).toMatchObject({ code: 0 });
    expect(JSON.parse(alone.stdout).configuration.service_id).toEqual({
      value: 'from-environment',
      from: 'environment',
      variable: 'DFINERY_SERVICE_ID',
    });

    const config = join(folder, 'some.json');
    const written = {
      base_url: 'http://127.0.0.1:1',
      service_id: 'from-file',
      export_token: 'canary-2',
      window_days: 1,
    };
    writeFileSync(config, JSON.stringify({ ...written, suppression_file: null }));
    const given = { DFINERY_WINDOW_DAYS: '5', DFINERY_EVENTS: 'a,b', DFINERY_SPOOL_DIR: folder };
    const both = await run(given, 'plan', '--json', '--config', config);
    expect(both).toMatchObject({ code: 0 });
    expect(`${both.stdout}${both.stderr}`).not.toContain('canary');
    const { configuration, windows } = JSON.parse(both.stdout);
    const days = windows.map(({ first, last }: Record<'first' | 'last', string>) => daysBetween(first, last) + 1);
    expect(Math.max(...days)).toBe(5);
    expect(configuration).toMatchObject({
      service_id: { value: 'from-file', from: 'file' },
      export_token: { value: '******', from: 'file' },
      window_days: { value: 5, from: 'environment', variable: 'DFINERY_WINDOW_DAYS' },
      events: { value: ['a', 'b'], from: 'environment', variable: 'DFINERY_EVENTS' },
      lookback_days: { value: 1, from: 'default' },
      suppression_file: { value: null, from: 'default' },
    });
    expect(Object.keys(configuration)).toEqual(Object.keys(schema.properties));
  });

  it('is required: the message names init and what is missing', async () => {
    process.chdir(folder);
    const { code, stderr } = await run({ DFINERY_SERVICE_ID: 'x' }, 'sync', 'duckdb', 'x.duckdb');
    expect(code).toBe(2);
    expect(stderr).toContain('there is no dfinery.json here: make one with dfinery-elt init');
    expect(stderr).toContain('set DFINERY_BASE_URL, DFINERY_EXPORT_TOKEN.');
    expect(await run({}, 'forget', '--id', 'x')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('there is no dfinery-destination.json here'),
    });
    expect(await run(REQUIRED, 'plan', '--config', 'gone.json')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('gone.json cannot be read'),
    });
  });

  it.each([['plan'], ['check'], ['discover'], ['sync', 'parquet', 'x'], ['forget', '--id', 'x']])(
    'refuses a misspelt variable first: %j',
    async (...argv) => {
      const { code, stderr } = await run({ ...REQUIRED, DFINERY_SERVICEID: 'x' }, ...argv);
      expect(code).toBe(2);
      expect(stderr).toContain('DFINERY_SERVICEID (did you mean DFINERY_SERVICE_ID?)');
    },
  );

  it('that sync refuses is reported in its JSON, as are unknown arguments', async () => {
    const xcom = join(folder, 'xcom.json');
    const argv = ['sync', 'duckdb', join(folder, 'x.duckdb'), '--json', '--xcom', xcom];
    const misspelt = await run({ ...REQUIRED, DFINERY_SERVICEID: 'x' }, ...argv);
    const empty = await run(REQUIRED, ...argv, '--schema', '');
    const nowhere = await run(REQUIRED, 'sync', 'duckdb', '', '--json', '--xcom', xcom);
    const unwritten = await run(REQUIRED, 'sync', 'parquet', folder, '--json', '--xcom', '');
    expect(JSON.parse(unwritten.stdout)).toMatchObject({ exit: 2, error: expect.stringMatching(/^--xcom is empty/) });
    const unknown = await run(REQUIRED, ...argv, '--colour');
    for (const [{ code, stdout }, reason] of [
      [misspelt, /DFINERY_SERVICEID/],
      [unknown, /^there is no option --colour\./],
      [empty, /^--schema is empty\./],
      [nowhere, /^PLACE is empty\./],
    ] as const) {
      expect(code).toBe(2);
      expect(Object.keys(JSON.parse(stdout))).toEqual(summarySchema.required);
      expect(JSON.parse(stdout)).toMatchObject({ exit: 2, error: expect.stringMatching(reason), windows: 0 });
    }
    expect(JSON.parse(readFileSync(xcom, 'utf8'))).toEqual(JSON.parse(unknown.stdout));
    const stream = await run(REQUIRED, 'sync', 'arrow', '-', '--json', '--colour');
    expect(stream.stdout).toBe('');
    expect(JSON.parse(stream.stderr.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ exit: 2 });
  });

  it('keeps its secrets out of a refusal that quotes values, in whichever key they were written', async () => {
    const secrets = ['export_token', 'suppression_key', 'hash_key'].map((key) => `canary/${key}/of 32 characters`);
    const [export_token, suppression_key, hash_key] = secrets;
    const suppression_file = join(folder, ...secrets, encodeURIComponent(hash_key));
    const given = { base_url: 'http://127.0.0.1:1', service_id: 'x', export_token, suppression_key, hash_key };
    const config = join(folder, 'secrets.json');
    writeFileSync(config, JSON.stringify({ ...given, suppression_file, columns_hash: ['df_keyword'] }));
    const out = join(folder, 'x.arrow');
    const env = { DFINERY_SPOOL_DIR: folder };
    const { code, stdout, stderr } = await run(env, 'sync', 'arrow', out, '--json', '--config', config);
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error).toContain('The suppression file');
    expect(`${stdout}${stderr}`).not.toContain('canary');
  });
});
