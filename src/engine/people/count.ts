import { isPlaceholder } from '../../base/placeholder.ts';
import type { Engine } from '../session/engine.ts';
import { type Cells, hmacSql, isAnyAmong, type KeyTables, type Wanted, wantedSql } from './cells.ts';
import type { PeopleQuery } from './query.ts';
import { nearSql } from './spelling.ts';

interface RowsOfQuery extends Pick<PeopleQuery, 'ids'> {
  readonly condition: string;
  readonly keys: KeyTables;
  readonly column: Cells | undefined;
  readonly unified: Cells;
}

/** The rows that leave for each id; a row of several ids counts for each. */
export async function countRowsOf(
  engine: Engine,
  from: string,
  { condition, keys, column, unified, ids }: RowsOfQuery,
) {
  const tables = [
    `SELECT n, key, 'u' AS of FROM ${keys.people}`,
    ...(column ? [`SELECT n, key, 'c' FROM ${keys.ids}`] : []),
  ];
  const cells = [
    ...unified.texts.map((text) => `{'of': 'u', 'key': ${text}}`),
    ...(column?.texts ?? []).map((text) => `{'of': 'c', 'key': ${text}}`),
  ];
  const rows = await engine.rows(`
    SELECT n, count(DISTINCT r) AS rows
    FROM (
      SELECT r, k.of AS of, k.key AS key
      FROM (
        SELECT r, unnest(keys) AS k
        FROM (SELECT row_number() OVER () AS r, [${cells.join(', ')}] AS keys FROM ${from} WHERE ${condition})
      )
    )
    JOIN (${tables.join(' UNION ALL ')}) USING (of, key)
    GROUP BY n`);
  return new Map(
    rows.flatMap(({ n, rows: count }) => (Number(n) in ids ? [[ids[Number(n)], Number(count)] as const] : [])),
  );
}

/** By the numbers of texts that differ from a stored one in its spelling alone: that one. */
export async function nearOf(
  engine: Engine,
  from: string,
  column: Cells,
  wanted: readonly Wanted[],
): Promise<Map<number, string>> {
  if (wanted.length === 0) return new Map();
  const { pads, texts } = column;
  const near = nearSql('text');
  const forms = pads.length === 0 ? [near] : [near, hmacSql(near)];
  const rows = await engine.rows(
    `
    SELECT n, any_value(stored) AS stored
    FROM (SELECT n, unnest([${forms.join(', ')}]) AS form FROM ${wantedSql(pads)})
    JOIN (
      SELECT ${near} AS form, any_value(text) AS stored
      FROM (SELECT DISTINCT unnest([${texts.join(', ')}]) AS text FROM ${from})
      GROUP BY form
    ) USING (form)
    WHERE form <> ''
    GROUP BY n`,
    [...pads, JSON.stringify(wanted)],
  );
  return new Map(rows.map(({ n, stored }) => [Number(n), String(stored)]));
}

/** Counts the people whose rows also have another id in the column. */
export async function countShared(
  engine: Engine,
  from: string,
  { column, unified, keys }: { readonly column: Cells; readonly unified: Cells; readonly keys: KeyTables },
): Promise<number> {
  const others = column.texts.map((text) => `CASE WHEN NOT ${isAnyAmong([text], keys.ids)} THEN ${text} END`);
  const rows = await engine.rows(`
    SELECT DISTINCT text, other
    FROM (
      SELECT text, unnest(others) AS other
      FROM (
        SELECT unnest(texts) AS text, others
        FROM (
          SELECT [${unified.texts.join(', ')}] AS texts, [${others.join(', ')}] AS others
          FROM ${from}
          WHERE ${unified.isAmong(keys.people)}
        )
      )
    )
    WHERE text IS NOT NULL AND other IS NOT NULL`);
  const shared = rows.filter(({ other }) => !isPlaceholder(String(other)));
  return new Set(shared.map(({ text }) => unified.personOf(String(text)))).size;
}
