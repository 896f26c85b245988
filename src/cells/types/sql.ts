/**
 * Writes a text without U+0000 as a literal of DuckDB's SQL; one that may have it, from outside, is `textLiteral` of
 * src/engine/session/quote.ts.
 */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** SQL of a cell that is NULL for the text `null`. */
export function withoutNullText(expr: string): string {
  return `nullif(${expr}, 'null')`;
}

/** SQL that is TRUE if `expr` is absent or `value` is not NULL. */
export function absentOr(expr: string, value: string): string {
  return `(${expr} IS NULL OR ${expr} IN ('', 'null') OR ${value} IS NOT NULL)`;
}

/** SQL that is TRUE if the whole text matches an RE2 pattern. */
export function matches(expr: string, pattern: string): string {
  return `regexp_full_match(${expr}, ${literal(pattern)})`;
}

/** SQL of the text that DuckDB gives a value. */
export const asText = (expr: string): string => `CAST(${expr} AS VARCHAR)`;

/** Returns a function that gives SQL which casts to a type of DuckDB; the SQL fails for a value that does not fit. */
export const castTo =
  (type: string) =>
  (expr: string): string =>
    `CAST(${expr} AS ${type})`;
