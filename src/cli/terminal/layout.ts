import { printable } from '../../base/text.ts';

const WIDE_CHARACTER =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const COMBINING_MARK = /\p{M}|\u200d|\ufe0f/u;

/** The width of a text in columns of a terminal: two for Korean and emoji, none for combining marks. */
export function widthOf(text: string): number {
  let width = 0;
  for (const char of text) width += COMBINING_MARK.test(char) ? 0 : WIDE_CHARACTER.test(char) ? 2 : 1;
  return width;
}

/** Truncates a text, as one printable line, to a width. */
export function truncate(text: string, maxWidth: number): string {
  const line = printable(text);
  if (widthOf(line) <= maxWidth) return line;
  let start = '';
  for (const char of line) {
    if (widthOf(start) + widthOf(char) > maxWidth - 1) break;
    start += char;
  }
  return `${start}…`;
}

const MAX_CELL_WIDTH = 40;
/** True for a number, a percentage and a number of bytes, as tables show them. */
export const isNumberText = (text: string): boolean => /^-?\d[\d,]*(\.\d+)?(%| [kM]?B)?$/.test(text);

/** Rows as lines of a table of this width, which truncates long cells and lines. Columns of numbers are aligned right. */
export function tableLines(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  width = Number.POSITIVE_INFINITY,
): string[] {
  const cells = rows.map((row) => header.map((_, i) => truncate(row[i] ?? '', MAX_CELL_WIDTH)));
  const widths = header.map((name, i) => Math.max(widthOf(name), ...cells.map((row) => widthOf(row[i]))));
  const isNumeric = header.map(
    (_, i) => cells.some((row) => row[i] !== '') && cells.every((row) => row[i] === '' || isNumberText(row[i])),
  );
  const pad = (text: string, i: number) => {
    const space = ' '.repeat(widths[i] - widthOf(text));
    return isNumeric[i] ? space + text : text + space;
  };
  const line = (row: readonly string[]) => truncate(`  ${row.map(pad).join('  ')}`.trimEnd(), width);
  const rule = `  ${widths.map((columnWidth) => '─'.repeat(columnWidth)).join('  ')}`;
  return [line(header), rule.slice(0, width), ...cells.map(line)];
}

/** A text in lines of this width, broken between words. */
export function wrappedLines(text: string, width: number, indent = ''): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(' ')) {
    if (line.trim() !== '' && widthOf(line) + widthOf(word) + 1 > width) {
      lines.push(line);
      line = indent;
    }
    line += line.trim() === '' ? word : ` ${word}`;
  }
  return [...lines, line];
}
