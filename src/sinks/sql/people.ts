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
 * The people of the rows whose column, by its name in the export, holds one of these texts. Throws a configuration
 * failure for a column that is not there.
 */
export async function findPeople(rows: EventRows, source: string, texts: readonly string[]): Promise<Match> {
  const name = columnName(rows, source);
  if (rows.from === undefined || texts.length === 0) return { people: [], found: [] };
  const id = identifier(rows.columns.find((c) => c.source === UNIFIED_ID)?.name ?? UNIFIED_ID);
  const found = await rows.engine.rows(
    `SELECT DISTINCT ${id} AS id, CAST(${name} AS VARCHAR) AS text FROM ${rows.from}
     WHERE CAST(${name} AS VARCHAR) IN (SELECT unnest(from_json($1, '["VARCHAR"]')))`,
    [JSON.stringify(texts)],
  );
  const people = found.flatMap(({ id: person }) => (person === null ? [] : String(person)));
  return { people: [...new Set(people)], found: [...new Set(found.map(({ text }) => String(text)))] };
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
  const pointer = textLiteral(`/${source.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  const texts = [`CAST(${columnName(rows, source)} AS VARCHAR)`, `json_extract_string(_rescued, ${pointer})`];
  const among = texts.map((text) => `coalesce(${text} IN (SELECT value FROM temp.main.${REMOVED_VALUES}), false)`);
  return `(${among.join(' OR ')})`;
}

function columnName({ columns, place }: Pick<EventRows, 'columns' | 'place'>, source: string): string {
  const column = columns.filter(isTyped).find((c) => c.source === source);
  if (column === undefined) throw configFailure(`${place} has no column ${source}: nothing was done.`);
  return identifier(column.name);
}
