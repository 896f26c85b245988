import { hashedIn } from '../../extract/state.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import { isTyped } from '../sql/columns/typed.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { readFiles } from '../sql/files/parquet-file.ts';
import { findPeople } from '../sql/people.ts';
import type { Match, TextsIn } from '../target.ts';
import { Lake, type LakeOptions } from './lake.ts';

/**
 * The people of the rows whose column holds one of these texts. Opens the place as a writer does, so that what
 * cannot be purged shows before anything is deleted.
 */
export async function peopleInDelta(options: LakeOptions, source: string, textsIn: TextsIn): Promise<Match> {
  try {
    const lake = await Lake.open(options, 'write');
    try {
      const { engine, address, events } = lake.mustExist();
      const columns = events.domains.columns() ?? [];
      const texts = textsIn(hashedIn(events.domains.state()));
      const name = columns.filter(isTyped).find((column) => column.source === source)?.name;
      // Only a file that has the column can hold a text in it.
      const files = name === undefined ? [] : events.files().filter((file) => file.columns.has(name));
      const unified = columns.find((column) => column.source === UNIFIED_ID)?.name ?? UNIFIED_ID;
      const wanted = new Set(name === undefined ? [] : [name, unified]);
      const locals = texts.length === 0 ? [] : [...(await lake.fetchColumns('events', files, wanted)).values()];
      const from = locals.length === 0 ? undefined : readFiles(locals);
      return await findPeople({ engine, from, columns, place: address }, source, texts);
    } finally {
      await lake.close();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.url);
  }
}
