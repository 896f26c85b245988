import { readFileSync } from 'node:fs';
import { tableFromIPC } from 'apache-arrow';
import { addDays, type Day, dayAt } from '../../src/base/days.ts';
import { START } from './drawn.ts';
import { configure, refreshLine, streamLine } from './settings.ts';
import type { Story } from './story.ts';
import { rowsOf } from './truth.ts';
import { World } from './world.ts';

/*
 * What reads all days of a world at once and keeps no cursor: compared with the service alone.
 */

/** The `_key` and the id of each row, in order. */
interface Read {
  readonly keys: readonly string[];
  readonly ids: readonly string[];
}

/** What is wrong with an Arrow stream. */
export const streamProblems = (story: Story): Promise<string[]> =>
  problemsOf(story, async (world) => {
    const line = streamLine(world);
    const { code, log } = await world.runOne(line);
    if (code !== 0) throw new Error(`it ended with ${code}: ${log.slice(-3).join('\n')}`);
    const table = tableFromIPC(readFileSync(line.options.file));
    const column = (name: string): string[] => [...(table.getChild(name) ?? [])].map(String);
    return { keys: column('_key'), ids: column('df_event_detail_log_id') };
  });

/** What is wrong with the records of a platform's full refresh, which replace all that it has. */
export const refreshProblems = (story: Story): Promise<string[]> =>
  problemsOf(story, async (world) => {
    const rows: Readonly<Record<string, unknown>>[] = [];
    const { code, log } = await world.runOne(refreshLine(world, (row) => rows.push(row)));
    if (code !== 0) throw new Error(`it ended with ${code}: ${log.slice(-3).join('\n')}`);
    const column = (name: string): string[] => rows.map((row) => String(row[name]));
    return { keys: column('_key'), ids: column('df_event_detail_log_id') };
  });

/** Rows of days that are over and are missing, rows that are there too often, keys that are not unique. */
async function problemsOf(story: Story, read: (world: World) => Promise<Read>): Promise<string[]> {
  const world = await World.start(story);
  try {
    configure(world);
    const { keys, ids } = await read(world);
    return [...doubled(keys), ...different(ids, world)];
  } finally {
    await world.close();
  }
}

const doubled = (keys: readonly string[]): string[] =>
  keys.filter((key, i) => keys.indexOf(key) !== i).map((key) => `_key ${key} is there twice`);

function different(ids: readonly string[], world: World): string[] {
  const open = dayAt(world.scheduler.now, -12);
  const over = rowsOf(world, world.service, { from: START, to: addDays(open, -1) as Day });
  const all = rowsOf(world, world.service, { from: START, to: addDays(open, 2) as Day });
  const countOf = (id: string) => ids.filter((one) => one === id).length;
  const missing = [...over].filter(([id, rows]) => countOf(id) < rows.length).map(([id]) => `${id} is missing`);
  const many = [...new Set(ids)].filter((id) => countOf(id) > (all.get(id)?.length ?? 0));
  return [...missing, ...many.map((id) => `${id} is there ${countOf(id)} times`)];
}
