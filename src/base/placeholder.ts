/** Texts that programs, tables and templates write in place of a missing value. */
const PLACEHOLDERS = new Set([
  ...['null', 'undefined', 'nan', 'none', 'nil', 'n/a', '\\n', '[object object]'],
  ...['#n/a', '#null!', '#ref!', '#value!', '#name?', '#num!', '#div/0!', '<na>', '""', "''", '[]', '{}', '()', '<>'],
]);
/** Fillers of Hangul and the blank of Braille are letters and symbols that show nothing. */
const NOTHING_VISIBLE = /^[\p{White_Space}\p{Cf}\p{Default_Ignorable_Code_Point}\u2800]*$/u;
const IN_BRACKETS = /^[<([{"'`]+(.*?)[>)\]}"'`]+$/s;
const INVISIBLE = /[\p{Cf}\p{Default_Ignorable_Code_Point}]/gu;
const WILDCARD = /^[*%]+$/;
const MAX_PLACEHOLDER_LENGTH = 40;

/** True for a text in which a reader sees nothing at all. */
export const isBlank = (text: string): boolean => NOTHING_VISIBLE.test(text);

/** True for a text that stands for no value: it names nobody, wherever an id is expected. */
export function isPlaceholder(text: string): boolean {
  if (isBlank(text)) return true;
  if (text.length > MAX_PLACEHOLDER_LENGTH) return false;
  // Normalised as a reader would see it: full-width letters or invisible characters do not make "null" an id.
  const visible = text.normalize('NFKC').replace(INVISIBLE, '').trim().toLowerCase();
  const unwrapped = IN_BRACKETS.exec(visible)?.[1] ?? visible;
  return PLACEHOLDERS.has(visible) || PLACEHOLDERS.has(unwrapped) || WILDCARD.test(unwrapped);
}
