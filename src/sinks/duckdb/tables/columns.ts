import type { ColumnGroup } from '../../../schema/scan.ts';
import type { StoredColumn } from '../../../table/columns.ts';
import { isColumnType } from '../../../types/type.ts';
import type { Engine, Row } from '../../sql/engine/engine.ts';

export const CREATE_COLUMNS = `CREATE TABLE _dfinery_columns (
  source_name VARCHAR, occurrence INTEGER, table_name VARCHAR, item_name VARCHAR, "group" VARCHAR, type VARCHAR, evidence INTEGER,
  position INTEGER, first_shape VARCHAR)`;

const SHAPE = `'[{"source":"VARCHAR","occurrence":"INTEGER","name":"VARCHAR","itemName":"VARCHAR","group":"VARCHAR",
"type":"VARCHAR","evidence":"INTEGER","position":"INTEGER","firstShape":"VARCHAR"}]'`;

/** Reads the map, in the order of positions. As JSON: a leading U+FEFF of a text would get lost on the way otherwise. */
export async function readColumns(engine: Engine): Promise<StoredColumn[]> {
  const rows = await engine.rows(
    'SELECT CAST(to_json(c) AS VARCHAR) AS c FROM _dfinery_columns AS c ORDER BY position',
  );
  return rows.map((row) => columnOf(JSON.parse(String(row.c))));
}

/** Replaces the rows of these columns. Inside a transaction. */
export async function writeColumns(engine: Engine, columns: readonly StoredColumn[]): Promise<void> {
  if (columns.length === 0) return;
  const json = JSON.stringify(columns);
  await engine.run(
    `DELETE FROM _dfinery_columns WHERE position IN (SELECT c.position FROM (SELECT unnest(from_json($1, ${SHAPE})) AS c))`,
    [json],
  );
  await engine.run(
    `INSERT INTO _dfinery_columns SELECT c.source, c.occurrence, c.name, c."itemName", c."group", c.type, c.evidence,
    c.position, c."firstShape" FROM (SELECT unnest(from_json($1, ${SHAPE})) AS c) ORDER BY c.position`,
    [json],
  );
}

function columnOf(row: Row): StoredColumn {
  return {
    source: String(row.source_name),
    occurrence: Number(row.occurrence),
    name: String(row.table_name),
    itemName: row.item_name === null ? null : String(row.item_name),
    group: row.group as ColumnGroup,
    type: isColumnType(row.type) ? row.type : null,
    evidence: Number(row.evidence),
    position: Number(row.position),
    firstShape: row.first_shape === null ? null : String(row.first_shape),
  };
}
