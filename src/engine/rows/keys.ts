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
