import { configFailure } from '../../base/errors.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import type { Match } from '../target.ts';
import type { StoredColumn } from './columns/stored.ts';
import { isTyped } from './columns/typed.ts';
import type { Engine } from './engine/engine.ts';
import { identifier, textLiteral } from './engine/quote.ts';

/** A place with events: what a query selects from, its columns, and its name for messages. */
export interface EventRows {
  readonly engine: Engine;
  /** What follows FROM; undefined while there are no rows. */
  readonly from: string | undefined;
  readonly columns: readonly StoredColumn[];
  readonly place: string;
}

/**
 * The people of the rows whose column, by its name in the export, holds one of these texts, typed or rescued. Throws a
 * configuration failure for a column that is not there.
 */
export async function findPeople(rows: EventRows, source: string, texts: readonly string[]): Promise<Match> {
  const cell = `coalesce(${cellTexts(rows, source).join(', ')})`;
  if (rows.from === undefined || texts.length === 0) return { people: [], found: [], foundWithoutId: [] };
  const id = identifier(rows.columns.find((c) => c.source === UNIFIED_ID)?.name ?? UNIFIED_ID);
  const pairs = await rows.engine.rows(
    `SELECT DISTINCT ${id} AS id, ${cell} AS text FROM ${rows.from}
     WHERE ${cell} IN (SELECT unnest(from_json($1, '["VARCHAR"]')))`,
    [JSON.stringify(texts)],
  );
  const [people, found, foundWithoutId] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const pair of pairs) {
    const text = String(pair.text);
    found.add(text);
    if (pair.id === null) foundWithoutId.add(text);
    else people.add(String(pair.id));
  }
  return { people: [...people], found: [...found], foundWithoutId: [...foundWithoutId] };
}

const REMOVED_VALUES = '_dfinery_removed_values';

/** Makes the temporary table of values that `removalCondition` looks into. */
export async function createRemovedValues(engine: Engine, values: readonly string[]): Promise<void> {
  await engine.run(`CREATE OR REPLACE TEMP TABLE ${REMOVED_VALUES} (value VARCHAR)`);
  await engine.run(`INSERT INTO temp.main.${REMOVED_VALUES} SELECT unnest(from_json($1, '["VARCHAR"]'))`, [
    JSON.stringify(values),
  ]);
}

/**
 * TRUE for a row to leave out: its cell, typed or rescued, is one of the values; never NULL. Throws a configuration
 * failure for a column that is not there.
 */
export function removalCondition(rows: Pick<EventRows, 'columns' | 'place'>, source: string): string {
  const among = cellTexts(rows, source).map(
    (text) => `coalesce(${text} IN (SELECT value FROM temp.main.${REMOVED_VALUES}), false)`,
  );
  return `(${among.join(' OR ')})`;
}

/** The text of a column's cell where it is typed, and where it did not fit; NULL in the other one. */
function cellTexts({ columns, place }: Pick<EventRows, 'columns' | 'place'>, source: string): [string, string] {
  const column = columns.filter(isTyped).find((c) => c.source === source);
  if (column === undefined) throw configFailure(`${place} has no column ${source}: nothing was done.`);
  const pointer = textLiteral(`/${source.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  return [`CAST(${identifier(column.name)} AS VARCHAR)`, `json_extract_string(_rescued, ${pointer})`];
}
