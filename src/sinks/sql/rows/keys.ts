import { compareBytes } from '../../../table/names.ts';
import { literal } from '../../../types/sql.ts';
import { textLiteral } from '../engine/quote.ts';

/** The beginning of the key of a row without an id. */
export const HASH_PREFIX = 'hash:';
const SHA256_HEX_LENGTH = 64;
/** Length of a key with a hash, without any `#n`. */
export const HASH_KEY_LENGTH = HASH_PREFIX.length + SHA256_HEX_LENGTH;

/**
 * A cell of a row: the name under which its value is hashed, and a VARCHAR expression of its raw text, NULL if it is
 * empty.
 */
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
 * A query that gives rows with the same base id their keys (`r`, `key`): `base`, `base#2`, `base#3`… in their order,
 * without keys that are taken (S12). `rows` is a query of `r`, `base`, and `n`, the number of the row among those with
 * its base id, from 1; `taken` is a query of `base` and `c`, each number that such a row may not get.
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

/** A query of the keys of the form `base#c` in the column `key` of a source, with the columns `base` and `c`. */
export function sqlNumbersIn(source: string): string {
  const pattern = literal('(?s)^(.*)#([1-9][0-9]{0,17})$');
  return `SELECT regexp_extract(key, ${pattern}, 1) AS base, try_cast(regexp_extract(key, ${pattern}, 2) AS BIGINT) AS c
    FROM ${source} WHERE contains(key, '#') AND regexp_matches(key, ${pattern})`;
}
