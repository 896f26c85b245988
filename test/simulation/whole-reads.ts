import { readFileSync } from 'node:fs';
import { tableFromIPC } from 'apache-arrow';
import { addDays } from '../../src/base/days.ts';
import { START } from './common.ts';
import { doubledKeys, openDay } from './invariants.ts';
import { configure, refreshLine, streamLine } from './settings.ts';
import { Simulation, type Work } from './simulation.ts';
import type { TestCase } from './test-case.ts';
import { rowsOf } from './truth.ts';

/*
 * Reads of all days that keep no cursor: an Arrow stream and a full refresh, compared with the service.
 */

/** The `_key` and the id of each row, in order. */
interface Read {
  readonly keys: readonly string[];
  readonly ids: readonly string[];
}

/** The problems of an Arrow stream. */
export const streamProblems = (testCase: TestCase): Promise<string[]> =>
  readProblems(testCase, async (simulation) => {
    const line = streamLine(simulation);
    await runWell(simulation, line);
    const table = tableFromIPC(readFileSync(line.options.file));
    const column = (name: string): string[] => [...(table.getChild(name) ?? [])].map(String);
    return { keys: column('_key'), ids: column('df_event_detail_log_id') };
  });

/** The problems of the records of a platform's full refresh, which replace everything that it has. */
export const refreshProblems = (testCase: TestCase): Promise<string[]> =>
  readProblems(testCase, async (simulation) => {
    const rows: Readonly<Record<string, unknown>>[] = [];
    await runWell(
      simulation,
      refreshLine(simulation, (row) => rows.push(row)),
    );
    const column = (name: string): string[] => rows.map((row) => String(row[name]));
    return { keys: column('_key'), ids: column('df_event_detail_log_id') };
  });

/** Rows of days that are over and are missing, rows that are there too often, keys that are not unique. */
async function readProblems(testCase: TestCase, read: (simulation: Simulation) => Promise<Read>): Promise<string[]> {
  const simulation = await Simulation.start(testCase);
  try {
    configure(simulation);
    const found = await read(simulation);
    return [...doubledKeys(found), ...miscounted(found.ids, simulation)];
  } finally {
    await simulation.close();
  }
}

async function runWell(simulation: Simulation, work: Work): Promise<void> {
  const { code, log } = await simulation.runOne(work);
  if (code !== 0) throw new Error(`it ended with ${code}: ${log.slice(-3).join('\n')}`);
}

function miscounted(ids: readonly string[], simulation: Simulation): string[] {
  const open = openDay(simulation);
  const over = rowsOf(simulation, simulation.service, { from: START, to: addDays(open, -1) });
  const all = rowsOf(simulation, simulation.service, { from: START, to: addDays(open, 2) });
  const countOf = (id: string) => ids.filter((one) => one === id).length;
  const missing = [...over].filter(([id, rows]) => countOf(id) < rows.length).map(([id]) => `${id} is missing`);
  const many = [...new Set(ids)].filter((id) => countOf(id) > (all.get(id)?.length ?? 0));
  return [...missing, ...many.map((id) => `${id} is there ${countOf(id)} times`)];
}
