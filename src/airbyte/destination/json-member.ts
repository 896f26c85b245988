/** The range [from, to) of a member's value in a JSON text. */
export interface ByteSpan {
  readonly from: number;
  readonly to: number;
}

/**
 * Finds the members of an object in its text, which is known to be valid JSON. Values are not parsed, so that numbers
 * of any size and any spelling can be passed on unchanged.
 */
export function membersOf(text: string): Map<string, ByteSpan> {
  const spans = new Map<string, ByteSpan>();
  let depth = 0;
  let lastString = '';
  let value: { readonly key: string; readonly from: number } | undefined;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (char === '"') {
      const end = endOfString(text, at);
      if (depth === 1 && value === undefined) lastString = text.slice(at, end);
      at = end - 1;
    } else if (char === ':' && depth === 1) value = { key: String(JSON.parse(lastString)), from: at + 1 };
    else if (char === '{' || char === '[') depth++;
    else if (char === '}' || char === ']' || char === ',') {
      if (depth === 1 && value !== undefined) {
        const raw = text.slice(value.from, at);
        spans.set(value.key, { from: at - raw.trimStart().length, to: value.from + raw.trimEnd().length });
        value = undefined;
      }
      if (char !== ',') depth--;
    }
  }
  return spans;
}

/** Sets one member of an object in its text to `value` (JSON text); everything else stays as it is, byte for byte. */
export function withMember(text: string, key: string, value: string): string {
  const members = membersOf(text);
  const span = members.get(key);
  if (span) return `${text.slice(0, span.from)}${value}${text.slice(span.to)}`;
  const end = text.lastIndexOf('}');
  return `${text.slice(0, end).trimEnd()}${members.size > 0 ? ',' : ''}${JSON.stringify(key)}:${value}}`;
}

/** The index behind the closing quote of the string that begins at `at`. */
function endOfString(text: string, at: number): number {
  for (let end = at + 1; end < text.length; end++) {
    if (text[end] === '\\') end++;
    else if (text[end] === '"') return end + 1;
  }
  return text.length;
}
