import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import summarySchema from '../../../schemas/summary.json' with { type: 'json' };
import { systemClock } from '../../../src/base/clock.ts';
import { readConfiguration, requireExportKeys } from '../../../src/cli/configuration.ts';
import { contextOf } from '../../../src/cli/context.ts';
import { NO_TERMINAL } from '../../../src/cli/terminal/terminal.ts';
import { refusalOf } from '../../support/failure.ts';
import { newFolder } from '../../support/new-folder.ts';
import { runHere } from '../../support/processes/command-line.ts';

const folder = newFolder();
const here = process.cwd();
beforeEach(() => process.chdir(folder));
afterEach(() => process.chdir(here));

const SERVICE = { base_url: 'http://127.0.0.1:1', service_id: 'from-file', export_token: 'canary-1' };
const REQUIRED = {
  DFINERY_BASE_URL: 'http://127.0.0.1:1',
  DFINERY_SERVICE_ID: 'from-environment',
  DFINERY_EXPORT_TOKEN: 'canary-token-1',
};

const run = (env: Readonly<Record<string, string>>, line: string) => runHere(line.split(' '), { env });

const contextFor = (env: Record<string, string> = {}) =>
  contextOf({ terminal: NO_TERMINAL, clock: systemClock, env, signal: new AbortController().signal }, () => {}, 'info');

function write(value: unknown, name = 'some/dfinery.json'): string {
  mkdirSync(join(folder, 'some'), { recursive: true });
  writeFileSync(join(folder, name), typeof value === 'string' ? value : JSON.stringify(value));
  return join(folder, name);
}

const refusal = (value: unknown) => refusalOf(() => requireExportKeys(readConfiguration(write(value), contextFor())));

describe('the configuration of the command line', () => {
  it('comes from the file, over which the environment wins', () => {
    const file = write({ ...SERVICE, timezone: null, lock_wait: '5m' });
    const config = readConfiguration(file, contextFor({ DFINERY_SERVICE_ID: 'from-environment', DFINERY_EVENTS: 'a' }));
    expect(config).toMatchObject({ serviceId: 'from-environment', events: ['a'], lockWaitMs: 300_000 });
    expect(readConfiguration(undefined, contextFor(REQUIRED)).serviceId).toBe('from-environment');
  });

  it('takes relative paths as relative to the file', () => {
    const places = [
      { target: 'duckdb', place: 'events.duckdb' },
      { target: 'delta', place: 's3://bucket/x' },
    ];
    const file = write({ ...SERVICE, spool_dir: 'spool', erasure: { ledger_dir: '../ledger', places } });
    expect(readConfiguration(file, contextFor())).toMatchObject({
      spoolDir: join(folder, 'some/spool'),
      ledgerDir: join(folder, 'ledger'),
      places: [
        { target: 'duckdb', place: join(folder, 'some/events.duckdb') },
        { target: 'delta', place: 's3://bucket/x' },
      ],
    });
  });

  it('has the place of commands that name none, and of erasures without places', async () => {
    const config = (value: object, env?: Record<string, string>) => {
      const { place, places } = readConfiguration(write({ target: 'duckdb', ...value }), contextFor(env));
      return { place, places };
    };
    const place = join(folder, 'some/e.duckdb');
    expect(config({ place: 'e.duckdb' })).toEqual({ place, places: [{ target: 'duckdb', place }] });
    expect(config({ place: 'e.duckdb' }, { DFINERY_PLACE: 'e.duckdb' }).place).toBe('e.duckdb');
    for (const erasure of [null, { places: null }, { places: '' }])
      expect(config({ place: 'e.duckdb', erasure })).toEqual(config({ place: 'e.duckdb' }));
    expect(config({ place: 'e.duckdb', erasure: { places: [] } }).places).toEqual([]);
    expect(config({ target: 'arrow', place: '-' })).toEqual({ place: '-', places: [] });
    expect(config({ target: 'delta', place: 's3://bucket/x' }).place).toBe('s3://bucket/x');
    write({ target: 'duckdb', place: '../e.duckdb' }, 'dfinery.json');
    expect((await run({}, 'status')).stderr).toContain('../e.duckdb holds nothing yet');
    expect((await run({}, 'status parquet lake')).stderr).toContain('lake holds nothing yet');
    rmSync('dfinery.json');
  });

  it('names a key that is missing with its variable and the file that was tried', async () => {
    const missing =
      'base_url is missing, export_token is missing: set DFINERY_BASE_URL, DFINERY_EXPORT_TOKEN (or …_FILE), or write';
    expect((await run({ DFINERY_SERVICE_ID: 'x' }, 'sync duckdb x.duckdb')).stderr).toContain(
      `${missing} them into dfinery.json, which is not here (dfinery-elt init makes it).`,
    );
    const file = write({ base_url: 'http://127.0.0.1:1', service_id: 'x' });
    expect((await run({}, `check --config ${file}`)).stderr).toContain(
      `export_token is missing: set DFINERY_EXPORT_TOKEN (or …_FILE), or write it into ${file}.`,
    );
  });

  it.each([
    ['status duckdb none.duckdb', 'holds nothing yet'],
    ['verify duckdb none.duckdb', 'holds no table'],
    ['report duckdb none.duckdb -o -', 'holds no table'],
    ['prune duckdb none.duckdb --older-than 1d', 'holds no table'],
  ])('needs no service and no key for what only reads a place: %s', async (line, sentence) => {
    const file = write({ suppression_file: 'list', columns_hash: ['member'] });
    expect((await run({}, `${line} --config ${file}`)).stderr).toContain(sentence);
  });

  it('is read whole to verify a ledger: a wrong key is no missing one', async () => {
    const { code, stderr } = await run({ DFINERY_BASE_URL: 'ftp://x' }, 'forget --verify-ledger none');
    expect([code, stderr]).toEqual([2, expect.stringContaining('DFINERY_BASE_URL')]);
  });

  it('is refused with everything that is wrong in any of its parts, each told once', async () => {
    const wrong = { base_url: 'ftp://x', lookback_days: -1, lock_wait: 'x', erasure: { profiles: 1, places: 'x' } };
    const message = refusal({ ...SERVICE, ...wrong });
    for (const key of ['base_url', 'lookback_days', 'lock_wait', 'profiles', 'places'])
      expect(message.split(`${key} is not usable`), key).toHaveLength(2);
  });

  it.each([null, ''])('is refused for the target alone where its place is %o', (place) => {
    expect(refusal({ ...SERVICE, target: 'duckdb', place })).toBe(
      'the configuration is not usable: place is missing: target and place go together.',
    );
  });

  it('is refused by check where a sync could not use the suppression list', async () => {
    const file = write({ ...SERVICE, suppression_file: 'nowhere.jsonl', suppression_key: 'k'.repeat(32) });
    const { code, stderr } = await run({}, `check --config ${file}`);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/The suppression list .*nowhere\.jsonl cannot be read/)]);
  });

  it.each<[string, unknown, string]>([
    ['an unknown key', { ...SERVICE, lookbackdays: 1 }, 'unknown keys: lookbackdays (did you mean lookback_days?).'],
    ['a key of an earlier version', { ...SERVICE, window_days: 1 }, 'unknown keys: window_days.'],
    [
      'an unknown key of erasure',
      { ...SERVICE, erasure: { ledgerdir: 'x' } },
      'erasure.ledgerdir (did you mean ledger_',
    ],
    ['a key of erasure beside it', { ...SERVICE, import_token: 'x' }, 'import_token (wanted in the object erasure).'],
    [
      'a key of the file in erasure',
      { erasure: { base_url: 'x' } },
      'erasure.base_url (wanted beside the object erasure).',
    ],
    [
      'an unknown key of a place',
      { ...SERVICE, erasure: { places: [{ target: 'duckdb', place: 'x', y: 1 }] } },
      'is not usable: places.0.y is unknown.',
    ],
    ['an erasure that is no object', { ...SERVICE, erasure: 'x' }, 'is not usable, wanted an object.'],
    ['no JSON', '{', 'is not valid JSON'],
    ['JSON with a fault', '{\n  "base_url": "x",\n}', 'is not valid JSON: look at line 3, column 1.'],
    ['a list', '[]', 'is not a JSON object'],
  ])('refuses %s', (_what, value, sentence) => {
    expect(refusal(value)).toContain(sentence);
  });

  it('refuses a place to purge with a key in it before the log shows it', async () => {
    const places = JSON.stringify([{ target: 'delta', place: 's3://k:t0ken@b/x' }]);
    const done = await run({ ...REQUIRED, DFINERY_PLACES: places }, 'forget --suppressed');
    expect([done.code, done.stderr]).toEqual([2, expect.stringContaining('DFINERY_PLACES has a user name or a key')]);
    expect(done.stderr).not.toContain('t0ken');
  });

  it('refuses a file that is not UTF-8', () => {
    writeFileSync(join(folder, 'cp949.json'), Buffer.from('{"service_id":"\xb0\xa1"}', 'latin1'));
    expect(refusalOf(() => readConfiguration('cp949.json', contextFor()))).toContain('cp949.json is not UTF-8');
  });

  it.each(['plan', 'verify duckdb x'])('refuses a misspelt variable first: %s', async (line) => {
    const { code, stderr } = await run({ ...REQUIRED, DFINERY_SERVICEID: 'x' }, line);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining('DFINERY_SERVICEID (did you mean DFINERY_SERVICE_ID?)'),
    ]);
  });

  it('that lacks a key of sync is reported in its JSON, on stderr where stdout carries the data', async () => {
    const { code, stdout } = await run({}, 'sync duckdb x.duckdb --json');
    expect([code, Object.keys(JSON.parse(stdout))]).toEqual([2, summarySchema.required]);
    expect(JSON.parse(stdout)).toMatchObject({ exit: 2, error: expect.stringContaining('base_url is missing') });
    const stream = await run({ DFINERY_TARGET: 'arrow', DFINERY_PLACE: '-' }, 'sync --json');
    expect(stream.stdout).toBe('');
    expect(JSON.parse(stream.stderr.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ exit: 2 });
  });

  it('shows no secret of its own, wherever that stands, even where a message would quote it', async () => {
    const secrets = ['canary-1-of-the-file', 'canary-2-of-erasure', 'canary-3-of-the-environment'];
    const [export_token, import_token, DFINERY_HASH_KEY] = secrets;
    const secretsAsKeys = Object.fromEntries(secrets.map((secret) => [secret, 1]));
    const file = write({ export_token, erasure: { import_token }, ...secretsAsKeys });
    const { code, stdout, stderr } = await run({ DFINERY_HASH_KEY }, `plan duckdb x --json --config ${file}`);
    expect(stdout).not.toContain('canary');
    expect([code, stderr]).toEqual([2, expect.stringMatching(/unknown keys: \*+, \*+, \*+\.\n$/)]);
  });
});
