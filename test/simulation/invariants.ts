import { existsSync } from 'node:fs';
import { addDays, type Day, dayAt } from '../../src/base/days.ts';
import type { TrueRow } from '../../src/simulator/data/csv.ts';
import { parseScenario } from '../../src/simulator/index.ts';
import { problem } from '../support/targets/stored-rows.ts';
import { HOUR, START } from './common.ts';
import type { People } from './people.ts';
import { type Held, NOTHING, TARGETS } from './places.ts';
import { Reads } from './reads.ts';
import { verifyLine } from './settings.ts';
import type { Simulation } from './simulation.ts';
import { rowsOf } from './truth.ts';

/*
 * What must hold whenever nothing runs, whatever has happened: checked against the service, never against the program.
 */

const MAX_SHOWN = 6;

const personOf = (row: ReadonlyMap<string, string>): string => row.get('df_unified_id') ?? '';

/** The first day that is not over in every zone. */
export const openDay = (simulation: Simulation): Day => dayAt(simulation.scheduler.now, -12);

/**
 * The problems of what a place holds now. `isMidway`: a change of several steps may be unfinished, since its run did
 * not end well.
 */
export async function problemsOf(
  simulation: Simulation,
  people: People,
  reads: Reads,
  isMidway: boolean,
): Promise<{ readonly held: Held; readonly problems: string[] }> {
  const held = await simulation.held();
  const problems = [
    ...simulation.platform.problems,
    ...cursorProblems(held, simulation),
    ...ruleProblems(held, simulation),
    ...stateProblems(held),
    ...doubledKeys(held),
    ...lostFiles(held),
    ...(held.lostOlder ?? []).map((path) => `${path} is not there, and an older version has it`),
    ...missingRows(held, simulation, people, reads),
    ...strangeRows(held, simulation, people),
    ...(isMidway ? [] : otherTables(held)),
    ...(await publishedProblems(simulation, people)),
    ...(await receiptProblems(simulation, isMidway)),
    ...(await people.ledgerProblems()),
  ];
  return { held, problems: problems.slice(0, MAX_SHOWN) };
}

/** The problems of what another user has loaded: they keep the rows of people who were purged here. */
export async function otherProblems(simulation: Simulation, people: People): Promise<string[]> {
  const held = await TARGETS[simulation.otherTarget].held(simulation.other);
  const problems = [
    ...cursorProblems(held, simulation),
    ...ruleProblems(held, simulation),
    ...stateProblems(held),
    ...doubledKeys(held),
    ...missingRows(held, simulation, people, new Reads(simulation.testCase)),
    ...strangeRows(held, simulation),
  ];
  return problems.slice(0, MAX_SHOWN).map((one) => `the other place: ${one}`);
}

function cursorProblems({ cursor }: Held, simulation: Simulation): string[] {
  if (cursor === undefined || cursor <= openDay(simulation)) return [];
  return [`the cursor is at ${cursor}, and ${openDay(simulation)} is not over yet`];
}

/** Checks that the exports show of `to_date` what is true: for single days, and for ranges. */
function ruleProblems({ inclusive, rangesInclusive }: Held, { testCase }: Simulation): string[] {
  const { to_date_inclusive: isInclusive, single_days: form } = parseScenario(testCase.scenario).days;
  // Ranges that are proved to leave their end out serve for single days as well.
  const isShown = inclusive === (form === 'as_ranges' ? isInclusive : form === 'whole') || (!isInclusive && !inclusive);
  return [
    ...(inclusive === undefined || isShown ? [] : [`to_date_inclusive: ${inclusive} was believed`]),
    ...(rangesInclusive === undefined || rangesInclusive === isInclusive
      ? []
      : [`ranges_inclusive: ${rangesInclusive} was believed`]),
  ];
}

/** State and data are stored in one step: each names the same window as the last one. */
function stateProblems({ lastReceipts: [said, there] }: Held): string[] {
  return said === there ? [] : [`the state ends with window ${said}, the data with ${there}`];
}

const lostFiles = ({ lost = [] }: Held): string[] => lost.map((path) => `${path} is not there, and is read`);

export function doubledKeys({ keys }: Pick<Held, 'keys'>): string[] {
  const seen = new Set<string>();
  return keys.filter((key) => seen.size === seen.add(key).size).map((key) => `_key ${key} is there twice`);
}

/**
 * Each day before the cursor has the rows that were there when it was over; each day that was read has those that were
 * there by then, as they were or in a later version.
 */
function missingRows(held: Held, simulation: Simulation, people: People, reads: Reads): string[] {
  const { rows, cursor } = held;
  const found = countOf(rows.map(({ id }) => id));
  const open = openDay(simulation);
  const later = rowsOf(simulation, simulation.corrected, { from: START, to: addDays(open, 1) });
  const out: string[] = [];
  for (let day: Day = START; day < open; day = addDays(day, 1)) {
    const at = reads.of(day, cursor);
    if (at === undefined) continue;
    const wanted = rowsOf(simulation, simulation.service, day, Math.min(at, simulation.scheduler.now));
    for (const [id, copies] of wanted) {
      const due = copies.filter((row) => !isGone(row, people));
      if ((found.get(id) ?? 0) < due.length) out.push(`${id} of ${day} is missing: the cursor is at ${cursor}`);
      const versions = later.get(id) ?? [];
      const there = rows.filter((row) => row.id === id);
      const old = due.find(
        (row) => ![row, ...versions].some((one) => there.some((stored) => isSame(one, stored, simulation, held))),
      );
      if (old !== undefined && there.length > 0) out.push(`${id} of ${day} is in an older version than was read`);
    }
  }
  return out;
}

const isSame = (row: TrueRow, stored: Held['rows'][number], simulation: Simulation, held: Held): boolean =>
  problem(row, stored, held, zoneOf(simulation)) === undefined;

const zoneOf = ({ testCase }: Simulation): number | undefined =>
  testCase.config.timezone === undefined ? undefined : 9;

/** It may be gone, as far as that depends on whom it names. */
function isGone(row: TrueRow, { purged, inDoubt, nameless }: People): boolean {
  const person = personOf(row);
  return person === '' ? nameless.has(row.get('member_no') ?? '') : purged.has(person) || inDoubt.has(person);
}

/** Every row is one that the service has or had, no more often than there, and nobody's who was purged. */
function strangeRows(held: Held, simulation: Simulation, people?: People): string[] {
  const range = { from: START, to: addDays(openDay(simulation), 3) };
  const original = rowsOf(simulation, simulation.original, range);
  const now = rowsOf(simulation, simulation.corrected, range);
  const found = countOf(held.rows.map(({ id }) => id));
  const out: string[] = [];
  for (const [id, count] of found) {
    const most = Math.max(original.get(id)?.length ?? 0, now.get(id)?.length ?? 0);
    if (count > most) out.push(most === 0 ? `${id} is invented` : `${id} is there ${count} times, wanted ${most}`);
  }
  const zone = zoneOf(simulation);
  for (const row of held.rows) {
    if (people?.purged.has(personOf(row.cells))) out.push(`${row.id} is of ${personOf(row.cells)}, who was purged`);
    const versions = [...(now.get(row.id) ?? []), ...(original.get(row.id) ?? [])];
    const wrong = versions.map((one) => problem(one, row, held, zone));
    if (wrong.length > 0 && !wrong.includes(undefined)) out.push(`${row.id} is torn: ${wrong.join('; or ')}`);
  }
  return out;
}

/** `event_logs` has each event once, `event_items` a row for each with an item. */
function otherTables({ rows, logs, items }: Held): string[] {
  const logOf = (cells: ReadonlyMap<string, string>) => cells.get('df_event_log_id') ?? 'null';
  const wanted = new Set(rows.map(({ cells }) => logOf(cells)));
  const found = countOf((logs ?? []).map(({ log }) => log));
  const out: string[] = [];
  for (const [log, count] of found) {
    if (!wanted.has(log)) out.push(`event_logs has ${log}, which events has not`);
    if (count > 1 && log !== 'null') out.push(`event_logs has ${log} ${count} times`);
  }
  if (logs !== undefined) for (const log of wanted) if (!found.has(log)) out.push(`event_logs lacks ${log}`);
  const withItem = rows.filter(({ cells }) => !['null', ''].includes(cells.get('df_items_color') ?? ''));
  if (items !== undefined && items.length !== withItem.length)
    out.push(`event_items has ${items.length} rows, wanted ${withItem.length}`);
  return out;
}

/** A copy for readers is whole at any time, and names nobody who was purged. */
async function publishedProblems(simulation: Simulation, people: People): Promise<string[]> {
  if (!simulation.testCase.publishes || !existsSync(simulation.published)) return [];
  const copy = (await simulation.target?.held(simulation.published)) ?? NOTHING;
  // A purge removes files at once, and publishes the copies again as its last step.
  const lost = people.isPurging ? [] : lostFiles(copy);
  const problems = [...lost, ...doubledKeys(copy), ...stateProblems(copy), ...strangeRows(copy, simulation, people)];
  return problems.map((one) => `the copy for readers: ${one}`);
}

function countOf(ids: readonly string[]): Map<string, number> {
  const out = new Map<string, number>();
  for (const id of ids) out.set(id, (out.get(id) ?? 0) + 1);
  return out;
}

/** The program's own check of data against receipts. */
async function receiptProblems(simulation: Simulation, isMidway: boolean): Promise<string[]> {
  if (!existsSync(simulation.place)) return [];
  const { code, results, log } = await simulation.runOne(verifyLine(simulation));
  // Tables beside `events` are committed first: one that a dead run left ahead of it is mended by the next window.
  if (code === 1 && isMidway && differences(results).every((one) => /: sync again, with --tables \w+$/.test(one)))
    return [];
  return code === 0 || log.join(' ').includes('holds no table of this program')
    ? []
    : [`verify ends with ${code}: ${[...results, ...log].slice(-3).join(' ')}`];
}

function differences(results: readonly string[]): string[] {
  const { differences: found } = JSON.parse(results.at(-1) ?? '{}') as { differences?: { message: string }[] };
  return (found ?? []).map(({ message }) => message);
}

/** After undisturbed days: every final day is exactly what the service has, in its last version. */
export function finalProblems(held: Held, simulation: Simulation, people: People, began: number): string[] {
  // As of the beginning of the last run.
  const cursor = dayAt(began - (simulation.testCase.isSettled ? simulation.testCase.settleHours * HOUR : 0), -12);
  const out =
    held.cursor !== undefined && held.cursor >= cursor ? [] : [`the cursor is at ${held.cursor}, wanted ${cursor}`];
  if (!simulation.testCase.readsAgain) return out;
  const last = addDays(cursor, simulation.testCase.isSettled ? -1 : -2);
  const zone = zoneOf(simulation);
  for (const [id, copies] of rowsOf(simulation, simulation.service, { from: START, to: last })) {
    const left = held.rows.filter((row) => row.id === id);
    for (const row of copies.filter((one) => !isGone(one, people))) {
      const at = left.findIndex((one) => problem(row, one, held, zone) === undefined);
      if (at === -1)
        out.push(`in the end ${id} is ${left.length === 0 ? 'missing' : problem(row, left[0], held, zone)}`);
      else left.splice(at, 1);
    }
  }
  return out.slice(0, MAX_SHOWN);
}
