import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, dayAt } from '../../../src/base/days.ts';
import { isObject } from '../../../src/base/json.ts';
import { COMMANDS } from '../../../src/cli/commands/commands.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { SERVICE_ID, startTestSimulator, TOKENS } from '../../support/service/simulator.ts';
import type { TestService } from '../../support/service/test-service.ts';
import { csvOf, on } from '../../support/targets/csv.ts';

const page = readFileSync(new URL('../../../docs/commands.md', import.meta.url), 'utf8');
const results = page.slice(page.indexOf('## Results as JSON'));

/** What the page says of the result of a command: a row of the table, or a section. */
const textOf = (command: string) =>
  results.split('\n').find((line) => line.startsWith(`| \`${command}\` |`)) ??
  results.split('\n### ').find((section) => section.startsWith(`\`${command}\``));
const dir = mkdtempSync(join(tmpdir(), 'dfinery-members-'));
const file = join(dir, 'events.duckdb');
/** A day that the service no longer exports. */
const OLD_DAY = addDays(dayAt(systemClock.now()), -90);
let sim: TestService;
let env: Record<string, string>;

beforeAll(async () => {
  sim = await startTestSimulator({}, { clock: systemClock, rowsPerDay: 20 });
  env = {
    DFINERY_BASE_URL: sim.url,
    DFINERY_SERVICE_ID: SERVICE_ID,
    DFINERY_EXPORT_TOKEN: TOKENS.export,
    DFINERY_START_DATE: addDays(dayAt(systemClock.now()), -1),
    DFINERY_SPOOL_DIR: join(dir, 'spool'),
  };
  expect((await runHere(['sync', 'duckdb', file], { env })).code).toBe(0);
  writeFileSync(join(dir, 'export.csv'), 'df_event_log_id,age\na,1\n');
  writeFileSync(join(dir, 'day.csv'), csvOf([{ id: 'a', ...on(OLD_DAY) }]));
});
afterAll(async () => {
  await sim.close();
  rmSync(dir, { recursive: true, force: true });
});

/** Names of the members of an object, and of the objects in its lists. */
function membersOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.slice(0, 1).flatMap(membersOf);
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([name, member]) => [name, ...membersOf(member)]);
}

const LINES: readonly (readonly [command: string, argv: readonly string[]])[] = [
  ['sync', ['sync', 'duckdb', file]],
  ['plan', ['plan', 'duckdb', file]],
  ['check', ['check']],
  ['inspect', ['inspect', join(dir, 'export.csv')]],
  ['verify', ['verify', 'duckdb', file]],
  ['status', ['status', 'duckdb', file]],
  ['load', ['load', 'duckdb', file, join(dir, 'day.csv'), '--day', OLD_DAY]],
  ['prune', ['prune', 'duckdb', file, '--older-than', '5d']],
  ['compact', ['compact', 'duckdb', file]],
  ['report', ['report', 'duckdb', file, '-o', join(dir, 'report.html')]],
  ['models', ['models', 'duckdb', file]],
  ['person', ['person', '--id', 'nobody', '--in', 'duckdb', file, '--by-column', 'df_unified_id']],
];
/** Commands with a result of a schema, a page of their own, or none. */
const OTHERS = ['forget', 'discover', 'demo', 'init', 'simulate'];

it('every command is tried here, or has its result described elsewhere', () => {
  expect([...LINES.map(([command]) => command), ...OTHERS].sort()).toEqual(Object.keys(COMMANDS).sort());
});

it.each(LINES)('docs/commands.md names the members of the JSON of %s', async (command, argv) => {
  const { code, stdout } = await runHere([...argv, '--json'], { env });
  expect(code).toBe(0);
  const { v, ...result } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
  expect(v).toBe(1);
  const names = new Set(textOf(command)?.match(/(?<=`)[\w-]+(?=`)/g));
  expect([...new Set(membersOf(result))].filter((name) => !names.has(name))).toEqual([]);
});
