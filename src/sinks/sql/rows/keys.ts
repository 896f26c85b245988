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
 * Statements that number the rows of `stage` (a table with a `base` VARCHAR, in the order of the export) into `keys`
 * (`r` rowid, `key`): every row whose base id an earlier row has gets `base#2`, `base#3`…, skipping numbers that are
 * somebody's own id.
 */
export function sqlNumberKeys(stage: string, repeated: string, keys: string): string[] {
  const numbered = `SELECT rowid AS r, base, row_number() OVER (PARTITION BY base ORDER BY rowid) AS n FROM ${stage}
    WHERE base IN (SELECT base FROM ${stage} GROUP BY base HAVING count(*) > 1)`;
  const taken = sqlNumbersIn(`(SELECT DISTINCT base AS key FROM ${stage})`);
  return [
    `CREATE TEMP TABLE ${repeated} AS SELECT r, base, n FROM (${numbered}) WHERE n > 1`,
    `CREATE TEMP TABLE ${keys} AS
    WITH taken AS (SELECT base AS b, c FROM (${taken}) WHERE c > 1 AND base IN (SELECT base FROM ${repeated})),
    clash AS (SELECT b, count(*) AS many FROM taken GROUP BY b),
    wanted AS (SELECT base, max(n) AS most FROM ${repeated} GROUP BY base),
    candidate AS (
      SELECT base, unnest(range(2, most + many + 1)) AS c FROM wanted JOIN clash ON clash.b = wanted.base),
    free AS (
      SELECT base, c, 1 + row_number() OVER (PARTITION BY base ORDER BY c) AS n
      FROM candidate ANTI JOIN taken ON taken.b = candidate.base AND taken.c = candidate.c)
    SELECT r, base || '#' || coalesce(free.c, n) AS key FROM ${repeated} LEFT JOIN free USING (base, n)`,
  ];
}

/** The keys `base#c` among the column `key` of a source, as a query with the columns `base` and `c`. */
export function sqlNumbersIn(source: string): string {
  const pattern = literal('(?s)^(.*)#([1-9][0-9]{0,17})$');
  return `SELECT regexp_extract(key, ${pattern}, 1) AS base, try_cast(regexp_extract(key, ${pattern}, 2) AS BIGINT) AS c
    FROM ${source} WHERE contains(key, '#') AND regexp_matches(key, ${pattern})`;
}
