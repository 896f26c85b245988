import { compareBytes } from '../../../table/names.ts';
import { literal } from '../../../types/sql.ts';
import { textLiteral } from '../engine/quote.ts';

/** What the key of a row without an id starts with. */
export const HASH_PREFIX = 'hash:';
const SHA256_HEX_LENGTH = 64;
/** Length of such a key before any `#n`. */
export const HASH_KEY_LENGTH = HASH_PREFIX.length + SHA256_HEX_LENGTH;

/** A cell of a row: the name its value is hashed under, and a VARCHAR expression of its raw text, NULL when empty. */
export interface KeyCell {
  readonly source: string;
  readonly expr: string;
}

/**
 * The key of a row without an id, as DuckDB SQL: `hash:` and the SHA-256 in hex over its non-empty cells in byte order of
 * their names, each as `<bytes of name>:<name><bytes of text>:<text>`. Cells of equal names keep the order given.
 */
function sqlHashKey(cells: readonly KeyCell[]): string {
  const ordered = [...cells].sort((a, b) => compareBytes(a.source, b.source));
  const parts = ordered.map(({ source, expr }) => {
    const name = textLiteral(`${Buffer.byteLength(source)}:${source}`);
    return `${name} || strlen(${expr}) || ':' || ${expr}`;
  });
  return `${literal(HASH_PREFIX)} || sha256(concat('', ${parts.join(', ')}))`;
}

/** The base id of a row: its id, or the hash of its cells. */
export function sqlBaseId(id: string | undefined, cells: readonly KeyCell[], everyRowHasId: boolean): string {
  if (id === undefined) return sqlHashKey(cells);
  return everyRowHasId ? id : `CASE WHEN ${id} IS NULL THEN ${sqlHashKey(cells)} ELSE ${id} END`;
}

/**
 * A query of the keys (`r`, `key`) of rows that share base ids: in their order `base`, `base#2`, `base#3`…, without those that are
 * taken (S12). `rows`: a query of `r`, `base`, and `n`, their order among those of one base id, from 1; `taken`: one of `base` and
 * `c`, for each number that such a row may not get.
 */
export const sqlNumberKeys = (rows: string, taken: string): string => `
    WITH mine AS MATERIALIZED (${rows}),
    taken AS MATERIALIZED (SELECT DISTINCT base, c FROM (${taken}) WHERE base IN (SELECT base FROM mine)),
    clash AS (SELECT base, count(*) AS many FROM taken GROUP BY base),
    wanted AS (SELECT base, max(n) AS most FROM mine GROUP BY base),
    candidate AS (SELECT base, unnest(range(1, most + many + 1)) AS c FROM wanted JOIN clash USING (base)),
    free AS (
      SELECT base, c, row_number() OVER (PARTITION BY base ORDER BY c) AS n FROM candidate ANTI JOIN taken USING (base, c))
    SELECT r, CASE WHEN coalesce(c, n) = 1 THEN base ELSE base || '#' || coalesce(c, n) END AS key
    FROM mine LEFT JOIN free USING (base, n)`;

/** The keys `base#c` among the column `key` of a source, as a query with the columns `base` and `c`. */
export function sqlNumbersIn(source: string): string {
  const pattern = literal('(?s)^(.*)#([1-9][0-9]{0,17})$');
  return `SELECT regexp_extract(key, ${pattern}, 1) AS base, try_cast(regexp_extract(key, ${pattern}, 2) AS BIGINT) AS c
    FROM ${source} WHERE contains(key, '#') AND regexp_matches(key, ${pattern})`;
}
