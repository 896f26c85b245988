/** The range [from, to) of a member's value in a JSON text. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/**
 * Finds the members of the object that begins at `at` in a text that is known to be valid JSON. Values are not parsed, so
 * that numbers of any size and any spelling can be passed on unchanged.
 */
export function membersOf(text: string, at: number): Map<string, Span> {
  const found = new Map<string, Span>();
  let i = skipSpace(text, skipSpace(text, at) + 1);
  while (text[i] === '"') {
    const keyEnd = endOfString(text, i);
    const key: unknown = JSON.parse(text.slice(i, keyEnd));
    const from = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const to = endOfValue(text, from);
    found.set(String(key), { from, to });
    i = skipSpace(text, to);
    if (text[i] === ',') i = skipSpace(text, i + 1);
  }
  return found;
}

/** The same object with one member set to `value` (JSON text); everything else stays as it is, byte for byte. */
export function withMember(text: string, key: string, value: string): string {
  const members = membersOf(text, 0);
  const span = members.get(key);
  if (span) return `${text.slice(0, span.from)}${value}${text.slice(span.to)}`;
  const end = text.lastIndexOf('}');
  return `${text.slice(0, end).trimEnd()}${members.size > 0 ? ',' : ''}${JSON.stringify(key)}:${value}}`;
}

const SPACE = /[ \t\r\n]*/y;
const SCALAR = /[^,}\] \t\r\n]+/y;

function skipSpace(text: string, at: number): number {
  SPACE.lastIndex = at;
  SPACE.exec(text);
  return SPACE.lastIndex;
}

function endOfString(text: string, at: number): number {
  let end = text.indexOf('"', at + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end + 1;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 1;
}

function endOfValue(text: string, at: number): number {
  if (text[at] === '"') return endOfString(text, at);
  if (text[at] !== '{' && text[at] !== '[') {
    SCALAR.lastIndex = at;
    SCALAR.exec(text);
    return SCALAR.lastIndex;
  }
  let depth = 0;
  for (let i = at; i < text.length; i++) {
    const c = text[i];
    if (c === '"') i = endOfString(text, i) - 1;
    else if (c === '{' || c === '[') depth++;
    else if ((c === '}' || c === ']') && --depth === 0) return i + 1;
  }
  return text.length;
}
