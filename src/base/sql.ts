// Parts of SQL in DuckDB's dialect. A function whose name ends in `Sql` gives SQL, here and everywhere;
// so do those that quote: `literal`, `identifier`, `pathLiteral`.

/** Quotes a text as a literal; U+0000, which would end the statement, is written as a function call. */
export function literal(text: string): string {
  if (!text.includes('\0')) return `'${text.replaceAll("'", "''")}'`;
  return `(${text.split('\0').map(literal).join(' || chr(0) || ')})`;
}

export const listSql = (expressions: readonly string[]): string => `[${expressions.join(', ')}]`;

/** SQL that is TRUE if the whole text matches an RE2 pattern. */
export const matchesSql = (expr: string, pattern: string): string => `regexp_full_match(${expr}, ${literal(pattern)})`;

/** SQL of the text that DuckDB gives a value. */
export const varcharSql = (expr: string): string => castSql(expr, 'VARCHAR');

/** SQL that casts a value to a type; it fails for a value that does not fit. */
export const castSql = (expr: string, type: string): string => `CAST(${expr} AS ${type})`;

export const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Quotes a file's path as a literal that `read_csv` takes as it is, whatever characters it has. */
export const pathLiteral = (path: string): string =>
  literal(path.replaceAll(/[[*?]/g, (character) => `[${character}]`));

/** `a OR b OR …` of any length, as a balanced tree: the parser's depth is bounded. */
export function anyOfSql(conditions: readonly string[]): string {
  if (conditions.length === 0) return 'false';
  if (conditions.length === 1) return conditions[0];
  const half = conditions.length >> 1;
  return `(${anyOfSql(conditions.slice(0, half))} OR ${anyOfSql(conditions.slice(half))})`;
}
