import { literal } from '../../cells/types/sql.ts';
import { compareBytes } from '../../table/names.ts';
import { textLiteral } from '../session/quote.ts';

const HASH_PREFIX = 'hash:';
/** A cell: the name under which it is hashed, and SQL of its raw text, NULL if it is empty. */
export interface KeyCell {
  readonly source: string;
  readonly expr: string;
}

/**
 * SQL of the key of a row without an id: `hash:` and the SHA-256 in hex over its non-empty cells in byte order of their
 * names, each as `<bytes of name>:<name><bytes of text>:<text>`. Cells of equal names keep the order given.
 */
function sqlHashKey(cells: readonly KeyCell[]): string {
  const ordered = [...cells].sort((a, b) => compareBytes(a.source, b.source));
  const parts = ordered.map(({ source, expr }) => {
    const name = textLiteral(`${Buffer.byteLength(source)}:${source}`);
    return `${name} || strlen(${expr}) || ':' || ${expr}`;
  });
  return `${literal(HASH_PREFIX)} || sha256(concat('', ${parts.join(', ')}))`;
}

/** SQL of the base id of a row: its id, or the hash of its cells. */
export function sqlBaseId(id: string | undefined, cells: readonly KeyCell[], everyRowHasId: boolean): string {
  if (id === undefined) return sqlHashKey(cells);
  return everyRowHasId ? id : `CASE WHEN ${id} IS NULL THEN ${sqlHashKey(cells)} ELSE ${id} END`;
}

/**
 * A query that gives rows with the same base id their keys (`ref`, `key`): `base`, `base#2`, `base#3`… in their order,
 * without keys that other rows have. `rows` is a query of `ref`, which tells the row, `base`, and `ordinal`, the
 * position of the row among those with its base id, from 1; `taken` is a query of `base` and each `number` that such a
 * row may not get. Two rows of the base id a, of which 2 is taken:
 *
 *     rows   ref 17, base a, ordinal 1          result   ref 17, key a
 *            ref 23, base a, ordinal 2                   ref 23, key a#3
 *     taken  base a, number 2
 */
export const sqlNumberKeys = (rows: string, taken: string): string => `
    WITH mine AS MATERIALIZED (${rows}),
    taken AS MATERIALIZED (SELECT DISTINCT base, number FROM (${taken}) WHERE base IN (SELECT base FROM mine)),
    clash AS (SELECT base, count(*) AS many FROM taken GROUP BY base),
    wanted AS (SELECT base, max(ordinal) AS most FROM mine GROUP BY base),
    candidate AS (SELECT base, unnest(range(1, most + many + 1)) AS number FROM wanted JOIN clash USING (base)),
    free AS (
      SELECT base, number, row_number() OVER (PARTITION BY base ORDER BY number) AS ordinal
      FROM candidate
      ANTI JOIN taken USING (base, number)
    )
    SELECT ref, CASE WHEN number = 1 THEN base ELSE base || '#' || number END AS key
    FROM (
      SELECT ref, base, coalesce(number, ordinal) AS number
      FROM mine
      LEFT JOIN free USING (base, ordinal)
    )`;

/**
 * A query of the keys of the form `base#number` in the column `key` of a source, with the columns `base` and `number`:
 * of a#3 `base` a, `number` 3.
 */
export function sqlNumbersIn(source: string): string {
  const pattern = literal('(?s)^(.*)#([1-9][0-9]{0,17})$');
  return `
    SELECT regexp_extract(key, ${pattern}, 1) AS base, try_cast(regexp_extract(key, ${pattern}, 2) AS BIGINT) AS number
    FROM ${source}
    WHERE contains(key, '#') AND regexp_matches(key, ${pattern})`;
}
