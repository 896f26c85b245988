import { existsSync } from 'node:fs';
import { addDays, type Day, dayAt } from '../../src/base/days.ts';
import type { TrueRow } from '../../src/simulator/data/csv.ts';
import { problem, type Stored } from '../support/targets/stored-rows.ts';
import type { People } from './people.ts';
import { type Held, heldIn } from './places.ts';
import { START } from './story.ts';
import { HOUR, PROPERTIES, type World } from './world.ts';

/*
 * What must hold whenever nothing runs, whatever has happened: told by what the service knows, never by the program.
 */

const ID = 'df_event_detail_log_id';
const SYSTEM =
  /^df_(api_version|correction_datetime|event_detail_log_id|event_log_id|event_name|server_datetime|unified_id)$/;
const MOST_SHOWN = 6;

/** The cells of a row that were asked for, under the names that a target gives them. */
function asked(row: TrueRow): TrueRow {
  const out = new Map<string, string>();
  for (const [name, text] of row) {
    if (name === 'event_name') out.set('df_event_name', text);
    else if (SYSTEM.test(name) || PROPERTIES.includes(name)) out.set(name, text);
  }
  return out;
}

function byId(rows: Iterable<TrueRow>): Map<string, TrueRow[]> {
  const out = new Map<string, TrueRow[]>();
  for (const row of rows) {
    const id = row.get(ID) ?? '';
    out.set(id, [...(out.get(id) ?? []), asked(row)]);
  }
  return out;
}

const personOf = (row: ReadonlyMap<string, string>): string => row.get('df_unified_id') ?? '';

/** The first day that is not over in every zone. */
const openDay = (world: World): Day => dayAt(world.scheduler.now, -12);

/** When a day is over in every zone. */
const overAt = (day: Day): number => Date.parse(`${addDays(day, 1)}T12:00:00Z`);

/** What is wrong with what a place holds now. `isBrokenOff`: the last run did not end well. */
export async function problemsOf(
  world: World,
  people: People,
  isBrokenOff: boolean,
): Promise<{ readonly held: Held; readonly problems: string[] }> {
  const held = await heldIn(world.story.target, world.place);
  const problems = [
    ...cursorProblems(held, world),
    ...stateProblems(held),
    ...doubledKeys(held),
    ...missingRows(held, world, people),
    ...strangeRows(held, world, people),
    ...(await receiptProblems(world, isBrokenOff)),
    ...(await people.ledgerProblems()),
  ];
  return { held, problems: problems.slice(0, MOST_SHOWN) };
}

function cursorProblems({ cursor }: Held, world: World): string[] {
  if (cursor === undefined || cursor <= openDay(world)) return [];
  return [`the cursor is at ${cursor}, and ${openDay(world)} is not over yet`];
}

/** State and data are stored in one step: each names the same window as the last one. */
function stateProblems({ lastReceipts: [said, there] }: Held): string[] {
  return said === there ? [] : [`the state ends with window ${said}, the data with ${there}`];
}

function doubledKeys({ keys }: Held): string[] {
  const seen = new Set<string>();
  return keys.filter((key) => seen.size === seen.add(key).size).map((key) => `_key ${key} is there twice`);
}

/** Each day before the cursor has the rows that were there when it was over. */
function missingRows({ rows, cursor }: Held, world: World, people: People): string[] {
  const found = countOf(rows.map(({ id }) => id));
  const out: string[] = [];
  for (let day: Day = START; cursor !== undefined && day < cursor; day = addDays(day, 1)) {
    const wanted = byId(world.service.truth(day, { at: Math.min(overAt(day), world.scheduler.now) }));
    for (const [id, copies] of wanted) {
      const due = copies.filter((row) => !isGone(row, people)).length;
      if ((found.get(id) ?? 0) < due) out.push(`${id} of ${day} is missing: the cursor is at ${cursor}`);
    }
  }
  return out;
}

const isGone = (row: TrueRow, { purged, inDoubt }: People): boolean =>
  purged.has(personOf(row)) || inDoubt.has(personOf(row));

/** Every row is one that the service has or had, no more often than there, and nobody's who was purged. */
function strangeRows(held: Held, world: World, { purged }: People): string[] {
  const range = { from: START, to: addDays(openDay(world), 3) };
  const original = byId(world.original.truth(range));
  const now = byId(world.corrected.truth(range));
  const found = countOf(held.rows.map(({ id }) => id));
  const out: string[] = [];
  for (const [id, count] of found) {
    const most = Math.max(original.get(id)?.length ?? 0, now.get(id)?.length ?? 0);
    if (count > most) out.push(most === 0 ? `${id} is invented` : `${id} is there ${count} times, wanted ${most}`);
  }
  const zone = world.story.config.timezone === undefined ? undefined : 9;
  for (const row of held.rows) {
    if (purged.has(personOf(row.cells))) out.push(`${row.id} is of ${personOf(row.cells)}, who was purged`);
    const versions = [...(now.get(row.id) ?? []), ...(original.get(row.id) ?? [])];
    const wrong = versions.map((one) => problem(one, row, held, zone));
    if (wrong.length > 0 && !wrong.includes(undefined)) out.push(`${row.id} is torn: ${wrong.join('; or ')}`);
  }
  return out;
}

function countOf(ids: readonly string[]): Map<string, number> {
  const out = new Map<string, number>();
  for (const id of ids) out.set(id, (out.get(id) ?? 0) + 1);
  return out;
}

/** The program's own check of data against receipts. */
async function receiptProblems(world: World, isBrokenOff: boolean): Promise<string[]> {
  if (!existsSync(world.place)) return [];
  const { code, results, log } = await world.runOne(world.verifyLine);
  // Tables beside `events` are committed first: one that a dead run left ahead of it is mended by the next window (S41).
  if (code === 1 && isBrokenOff && differences(results).every((one) => one.endsWith(': sync again'))) return [];
  return code === 0 || /holds no |never loaded|no .* of this program/.test(log.join(' '))
    ? []
    : [`verify ends with ${code}: ${[...results, ...log].slice(-3).join(' ')}`];
}

function differences(results: readonly string[]): string[] {
  const { differences: found } = JSON.parse(results.at(-1) ?? '{}') as { differences?: { message: string }[] };
  return (found ?? []).map(({ message }) => message);
}

/** After days in peace: every final day is exactly what the service has, in its last version. */
export function finalProblems(held: Held, world: World, people: People, began: number): string[] {
  // As of the beginning of the last run.
  const cursor = dayAt(began - (world.story.isSettled ? 3 * HOUR : 0), -12);
  const out =
    held.cursor !== undefined && held.cursor >= cursor ? [] : [`the cursor is at ${held.cursor}, wanted ${cursor}`];
  const last = addDays(cursor, world.story.isSettled ? -1 : -2);
  const zone = world.story.config.timezone === undefined ? undefined : 9;
  for (const [id, copies] of byId(world.service.truth({ from: START, to: last }))) {
    const left = held.rows.filter((row) => row.id === id);
    for (const row of copies.filter((one) => !isGone(one, people))) {
      const at = left.findIndex((one) => problem(row, one, held as Stored, zone) === undefined);
      if (at === -1)
        out.push(`in the end ${id} is ${left.length === 0 ? 'missing' : problem(row, left[0], held, zone)}`);
      else left.splice(at, 1);
    }
  }
  return out.slice(0, MOST_SHOWN);
}
