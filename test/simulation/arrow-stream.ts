import { readFileSync } from 'node:fs';
import { tableFromIPC } from 'apache-arrow';
import { addDays, type Day, dayAt } from '../../src/base/days.ts';
import { START } from './drawn.ts';
import { configure, streamLine } from './settings.ts';
import type { Story } from './story.ts';
import { rowsOf } from './truth.ts';
import { World } from './world.ts';

/*
 * An Arrow stream of all days of a world. It keeps no cursor, so what it holds is compared with the service alone.
 */

/** What is wrong with it: rows of days that are over and are missing, rows that are there too often, keys that are not unique. */
export async function streamProblems(story: Story): Promise<string[]> {
  const world = await World.start(story);
  try {
    configure(world);
    const line = streamLine(world);
    const ended = await world.runOne(line);
    if (ended.code !== 0) return [`it ended with ${ended.code}: ${ended.log.slice(-3).join('\n')}`];
    const table = tableFromIPC(readFileSync(line.options.file));
    const column = (name: string): string[] => [...(table.getChild(name) ?? [])].map(String);
    return [...doubled(column('_key')), ...different(column('df_event_detail_log_id'), world)];
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
