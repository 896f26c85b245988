import { hashedIn } from '../../extract/state.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import { isTyped } from '../../table/columns.ts';
import { identifier } from '../sql/engine/quote.ts';
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
      const unified = columns.find((column) => column.source === UNIFIED_ID)?.name ?? UNIFIED_ID;
      const files = name === undefined || texts.length === 0 ? [] : events.files();
      const wanted = new Set(['_rescued', unified, ...(name === undefined ? [] : [name])]);
      const locals = await lake.fetchColumns('events', files, wanted);
      // A file without the column may hold its texts as rescued ones.
      const [having, lacking] = [true, false].map((has) =>
        files.filter((file) => file.columns.has(name ?? '') === has).map(({ path }) => locals.get(path) ?? ''),
      );
      const from = eventRows(identifier(unified), identifier(name ?? ''), having, lacking);
      return await findPeople({ engine, from, columns, place: address }, source, texts);
    } finally {
      await lake.close();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.url);
  }
}

/** The cells to look into, as a query; undefined without a file. */
function eventRows(
  unified: string,
  column: string,
  having: readonly string[],
  lacking: readonly string[],
): string | undefined {
  const parts = [
    ...(having.length === 0 ? [] : [`SELECT ${unified}, ${column}, _rescued FROM ${readFiles(having)}`]),
    ...(lacking.length === 0 ? [] : [`SELECT ${unified}, NULL AS ${column}, _rescued FROM ${readFiles(lacking)}`]),
  ];
  return parts.length === 0 ? undefined : `(${parts.join(' UNION ALL ')})`;
}
