import type { Window } from '../../../extract/window.ts';
import { EVENT_NAME } from '../../../schema/groups.ts';
import type { StoredColumn } from '../../../table/columns.ts';
import { MAX_EVENT_NAMES, scannedEventNames } from '../../../table/state.ts';
import type { Engine } from '../engine/engine.ts';
import { nameOf } from '../views.ts';

/** The names of events among rows, sorted, at most as many as a target keeps. `from`: the relation of the rows. */
export async function eventNamesIn(engine: Engine, from: string, columns: readonly StoredColumn[]): Promise<string[]> {
  const name = `CAST(${nameOf(columns, EVENT_NAME)} AS VARCHAR)`;
  const rows = await engine.rows(
    `SELECT DISTINCT ${name} AS name FROM ${from} WHERE ${name} IS NOT NULL ORDER BY 1 LIMIT ${MAX_EVENT_NAMES}`,
  );
  return rows.map((row) => String(row.name));
}

/** The names of events of a batch; from its rows if a scan did not collect them all. `from`: undefined if it has no row. */
export async function eventNamesOf(
  engine: Engine,
  windows: readonly Window[],
  from: string | undefined,
  columns: readonly StoredColumn[],
): Promise<readonly string[]> {
  const scanned = scannedEventNames(windows.flatMap(({ files }) => files));
  return scanned ?? (from === undefined ? [] : eventNamesIn(engine, from, columns));
}
