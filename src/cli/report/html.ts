/** A piece of HTML that is safe as it stands. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

type Part = Html | string | number | readonly Html[];

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Template of HTML: every text put into it is escaped, for element content and for quoted attributes alike. */
export function html(strings: TemplateStringsArray, ...parts: readonly Part[]): Html {
  return new Html(strings.map((string, i) => string + (i < parts.length ? textOf(parts[i]) : '')).join(''));
}

function textOf(part: Part): string {
  if (part instanceof Html) return part.text;
  if (typeof part === 'object') return part.map(({ text }) => text).join('');
  return visible(String(part)).replaceAll(/[&<>"']/g, (character) => ENTITIES[character]);
}

/** Characters that show nothing or turn the direction of the text become visible. */
export const visible = (text: string): string =>
  text.replaceAll(
    /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
