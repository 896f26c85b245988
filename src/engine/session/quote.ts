import { literal } from '../../cells/types/sql.ts';

export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Quotes a text as a literal; U+0000, which would end the statement, is written as a function call. */
export function textLiteral(text: string): string {
  if (!text.includes('\0')) return literal(text);
  return `(${text.split('\0').map(literal).join(' || chr(0) || ')})`;
}

/** Quotes a file's path as a literal that `read_csv` takes as it is, whatever characters it has. */
export function pathLiteral(path: string): string {
  return literal(path.replaceAll(/[[*?]/g, (character) => `[${character}]`));
}

/** `a OR b OR …` of any length, as a balanced tree: the parser's depth is bounded. */
export function anyOf(conditions: readonly string[]): string {
  if (conditions.length === 0) return 'false';
  if (conditions.length === 1) return conditions[0];
  const half = conditions.length >> 1;
  return `(${anyOf(conditions.slice(0, half))} OR ${anyOf(conditions.slice(half))})`;
}

/** SQL of one member of a JSON object if the condition holds, else NULL; `expr` is VARCHAR. */
export function jsonMember(key: string, expr: string, condition: string): string {
  return `CASE WHEN ${condition} THEN ${textLiteral(`${JSON.stringify(key)}:`)} || to_json(${expr}) END`;
}
