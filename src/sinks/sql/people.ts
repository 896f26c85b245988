import { configFailure } from '../../base/errors.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import { isTyped, type StoredColumn, type Typed } from '../../table/columns.ts';
import { TYPES } from '../../types/index.ts';
import type { Match } from '../target.ts';
import type { Engine } from './engine/engine.ts';
import { identifier, textLiteral } from './engine/quote.ts';
import { nameOf } from './views.ts';

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
  const { typed, rescued, asTyped } = cellTexts(rows, source);
  if (rows.from === undefined || texts.length === 0) return { people: [], found: [], foundWithoutId: [] };
  const id = nameOf(rows.columns, UNIFIED_ID);
  const pairs = await rows.engine.rows(
    `SELECT DISTINCT ${id} AS id, _dfinery_text AS text FROM ${rows.from} JOIN (
       SELECT _dfinery_text, ${asTyped('_dfinery_text')} AS _dfinery_cell
       FROM (SELECT unnest(from_json($1, '["VARCHAR"]')) AS _dfinery_text)
     ) ON _dfinery_cell = coalesce(${typed}, ${rescued})`,
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
  const { typed, rescued, asTyped } = cellTexts(rows, source);
  const isAmong = (text: string, value: string) =>
    `coalesce(${text} IN (SELECT ${value} FROM temp.main.${REMOVED_VALUES}), false)`;
  return `(${isAmong(typed, asTyped('value'))} OR ${isAmong(rescued, 'value')})`;
}

interface CellTexts {
  /** The text of a cell that its column's type took; NULL in another row. */
  readonly typed: string;
  /** The text of one that did not fit; NULL in another row. */
  readonly rescued: string;
  /** What `typed` is for a cell of this text; the text itself where it does not fit. */
  readonly asTyped: (text: string) => string;
}

function cellTexts({ columns, place }: Pick<EventRows, 'columns' | 'place'>, source: string): CellTexts {
  const column = columns.filter(isTyped).find((c) => c.source === source);
  if (column === undefined) throw configFailure(`${place} has no column ${source}: nothing was done.`);
  const pointer = textLiteral(`/${source.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  return { ...typedTexts(column), rescued: `json_extract_string(_rescued, ${pointer})` };
}

/** Of the types that an id can have, these two keep a value and not its spelling: `12` is `12.0` among doubles. */
function typedTexts({ name, type }: Typed): Pick<CellTexts, 'typed' | 'asTyped'> {
  const column = identifier(name);
  if (type !== 'boolean' && type !== 'double') return { typed: `CAST(${column} AS VARCHAR)`, asTyped: (text) => text };
  const { sql, sqlText } = TYPES[type];
  return { typed: sqlText(column), asTyped: (text) => `coalesce(${sqlText(`(${sql(text)})`)}, ${text})` };
}
