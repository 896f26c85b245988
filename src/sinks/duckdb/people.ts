import { configFailure } from '../../base/errors.ts';
import { UNIFIED_ID } from '../../schema/groups.ts';
import { readColumns } from './columns.ts';
import { type EngineOptions, openEngine } from './engine.ts';
import { engineFailure } from './faults.ts';
import { identifier } from './sql.ts';
import { checkStore } from './store.ts';

/**
 * The `df_unified_id`s of the rows whose column, by its name in the export, holds one of these texts. Opens the file for
 * reading alone. Throws a configuration failure for a column that is not there.
 */
export async function peopleInDuckDb(
  options: Omit<EngineOptions, 'readOnly'>,
  column: string,
  texts: readonly string[],
): Promise<string[]> {
  const engine = await openEngine({ ...options, readOnly: true });
  try {
    await checkStore(engine);
    const columns = await readColumns(engine);
    const nameOf = (source: string) => columns.find((c) => c.source === source && c.type !== null)?.name;
    const name = nameOf(column);
    if (name === undefined) throw configFailure(`${engine.file} has no column ${column}: nothing was done.`);
    const id = identifier(nameOf(UNIFIED_ID) ?? UNIFIED_ID);
    const rows = await engine.rows(
      `SELECT DISTINCT ${id} AS id FROM events WHERE ${id} IS NOT NULL
       AND CAST(${identifier(name)} AS VARCHAR) IN (SELECT unnest(from_json($1, '["VARCHAR"]')))`,
      [JSON.stringify(texts)],
    );
    return rows.map((row) => String(row.id));
  } catch (error) {
    throw engineFailure(error, engine.file);
  } finally {
    await engine.close();
  }
}
