import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { TOKENS } from '../../support/service/start-service.ts';

let fixture: CliFixture;
const run = (...args: string[]) =>
  fixture.run(args, {
    ...fixture.variables,
    DFINERY_IMPORT_TOKEN: TOKENS.import,
    DFINERY_START_DATE: daysBack(3),
  });

beforeAll(async () => {
  fixture = await CliFixture.start();
  expect(await run('sync', 'duckdb', fixture.file)).toMatchObject({ code: 0 });
});
afterAll(() => fixture.close());

const REPLACED =
  /events\.duckdb is there already, and is not a page of this program: give another path, or remove it\.$/m;
it.each([
  ['the page of a report', () => ['report', 'duckdb', fixture.file, '--output', fixture.file], REPLACED],
  ['an Arrow stream', () => ['sync', 'arrow', fixture.file], /events\.duckdb is a place of duckdb: write sync duckdb /],
  ['an Arrow stream below it', () => ['sync', 'arrow', `${fixture.file}/`], /cannot be written \(ENOTDIR\)/],
] as const)('%s does not replace a database', async (_what, args, message) => {
  const { code, stderr } = await run(...args());
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
  expect(await run('verify', 'duckdb', fixture.file)).toMatchObject({ code: 0 });
});

it.each([
  ['a page of this program', (path: string) => ['report', 'duckdb', fixture.file, '-o', path]],
  ['an Arrow stream of this program', (path: string) => ['sync', 'arrow', path]],
] as const)('%s replaces a file of its own kind or an empty one, and no other', async (kind, args) => {
  const path = join(fixture.dir, 'requests.csv');
  writeFileSync(path, 'id\nKR-1\n');
  const message = expect.stringContaining(
    `${path} is there already, and is not ${kind}: give another path, or remove it.`,
  );
  expect(await run(...args(path))).toMatchObject({ code: 2, stderr: message });
  expect(readFileSync(path, 'utf8')).toBe('id\nKR-1\n');
  writeFileSync(path, '');
  for (let i = 0; i < 2; i++) expect(await run(...args(path))).toMatchObject({ code: 0 });
});

const inBucket = (name: string) => `s3://bucket/${name}`;
const ADDRESS = /s3:\/\/bucket\/\w+ is an address: give a path on this machine/;
it.each([
  ['a Parquet folder', () => ['sync', 'parquet', inBucket('lake')], ADDRESS],
  ['a DuckDB file', () => ['sync', 'duckdb', inBucket('events')], ADDRESS],
  ['an Arrow stream', () => ['sync', 'arrow', inBucket('stream')], ADDRESS],
  ['the page of a report', () => ['report', 'duckdb', fixture.file, '--output', inBucket('page')], ADDRESS],
] as const)('%s is never written below a folder called s3: or gs:', async (_what, args, message) => {
  const { code, stderr } = await run(...args());
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringMatching(message) });
  expect(['s3:', 'gs:'].filter((name) => existsSync(name))).toEqual([]);
});

it.each(['parquet', 'delta'])('no tables of %s are made around the files of others', async (name) => {
  const lake = join(fixture.dir, `${name}-around`);
  const events = join(lake, 'events');
  mkdirSync(events, { recursive: true });
  const other = join(events, 'other.duckdb');
  expect(await run('sync', 'duckdb', other)).toMatchObject({ code: 0 });
  expect(await run('sync', name, lake)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(`${events} holds files that this program did not write: `),
  });
  expect(await run('verify', 'duckdb', other)).toMatchObject({ code: 0 });
});

it('the page of a report goes to stdout for -', async () => {
  const page = await run('report', 'duckdb', fixture.file, '-o', '-');
  expect(page).toMatchObject({ code: 0, stdout: expect.stringMatching(/^<!doctype html>\n.*<\/html>\n$/is) });
  expect(existsSync('-')).toBe(false);
  const { stdout } = await run('report', 'duckdb', fixture.file, '-o', '-', '--json');
  expect(stdout).toMatch(/^<!doctype html>\n.*<\/html>\n\{"v":1,.*\}\n$/is);
});
