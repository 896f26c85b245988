import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { isObject } from '../../../src/base/json.ts';
import { COMMANDS } from '../../../src/cli/commands/commands.ts';
import { CliFixture, daysBack } from '../../support/processes/cli-child.ts';
import { csvOf, on } from '../../support/targets/csv.ts';

const page = readFileSync(new URL('../../../docs/commands.md', import.meta.url), 'utf8');
const results = page.slice(page.indexOf('## Results as JSON'));

/** What the page says of the result of a command: a row of the table, or a section. */
const textOf = (command: string) =>
  results.split('\n').find((line) => line.startsWith(`| \`${command}\` |`)) ??
  results.split('\n### ').find((section) => section.startsWith(`\`${command}\``));
/** A day that the service no longer exports. */
const OLD_DAY = daysBack(90);
let fixture: CliFixture;
let env: Record<string, string>;

beforeAll(async () => {
  fixture = await CliFixture.start();
  env = { ...fixture.variables, DFINERY_START_DATE: daysBack(1) };
  expect((await fixture.run(['sync', 'duckdb', fixture.file], env)).code).toBe(0);
  writeFileSync(join(fixture.dir, 'export.csv'), 'df_event_log_id,age\na,1\n');
  writeFileSync(join(fixture.dir, 'day.csv'), csvOf([{ id: 'a', ...on(OLD_DAY) }]));
});
afterAll(() => fixture.close());

/** Names of the members of an object, and of the objects in its lists. */
function membersOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.slice(0, 1).flatMap(membersOf);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...membersOf(member)]);
}

/** What follows each command; DIR is the folder, FILE the DuckDB file in it. */
const WORDS: Readonly<Record<string, string>> = {
  sync: 'duckdb FILE',
  plan: 'duckdb FILE',
  check: '',
  inspect: 'DIR/export.csv',
  verify: 'duckdb FILE',
  status: 'duckdb FILE',
  load: `duckdb FILE DIR/day.csv --day ${OLD_DAY}`,
  prune: 'duckdb FILE --older-than 5d',
  compact: 'duckdb FILE',
  report: 'duckdb FILE -o DIR/report.html',
  models: 'duckdb FILE',
  person: '--id nobody --in duckdb FILE --by-column df_unified_id',
};
/** Commands with a result of a schema, a page of their own, or none. */
const OTHERS = ['forget', 'discover', 'demo', 'init', 'simulate'];

it('every command is tried here, or has its result described elsewhere', () => {
  expect([...Object.keys(WORDS), ...OTHERS].sort()).toEqual(Object.keys(COMMANDS).sort());
});

it.each(Object.entries(WORDS))('docs/commands.md names the members of the JSON of %s', async (command, words) => {
  const line = `${command} ${words} --json`.replace('FILE', fixture.file).replace('DIR', fixture.dir);
  const { code, stdout } = await fixture.run(line.split(/ +/), env);
  expect(code).toBe(0);
  const { v, ...result } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
  expect(v).toBe(1);
  const names = new Set(textOf(command)?.match(/(?<=`)[\w-]+(?=`)/g));
  expect([...new Set(membersOf(result))].filter((name) => !names.has(name))).toEqual([]);
});
