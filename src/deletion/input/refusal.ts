/** Why a row is refused before anything is sent. The order is that of reports. */
export const REFUSALS = [
  'missing',
  'not_a_string',
  'empty',
  'blank',
  'null_like',
  'too_long',
  'control_characters',
  'not_unicode',
  'withdrawn',
] as const;
export type Refusal = (typeof REFUSALS)[number];

/** The same for people. */
export const REFUSAL_TEXT = {
  missing: 'the ID field is missing or null',
  not_a_string: 'the ID is not a string',
  empty: 'the ID is empty',
  blank: 'the ID holds nothing visible',
  null_like: 'the ID is a placeholder such as null, undefined, NaN or *',
  too_long: 'the ID is longer than max_id_length',
  control_characters: 'the ID holds control characters',
  not_unicode: 'the ID is not valid Unicode',
  withdrawn: 'the request was withdrawn at the source (_ab_cdc_deleted_at)',
} as const satisfies Record<Refusal, string>;

const BLANK = /^[\p{White_Space}\p{Cf}]+$/u;
const CONTROL = /\p{Cc}/u;
const LONE_SURROGATE = /\p{Surrogate}/u;
/** Texts that programs, tables and templates write in place of a missing value. */
const PLACEHOLDERS = new Set([
  ...['null', 'undefined', 'nan', 'none', 'nil', 'n/a', '\\n', '[object object]'],
  ...['#n/a', '#null!', '#ref!', '#value!', '#name?', '#num!', '#div/0!', '<na>', '""', "''", '[]', '{}', '()', '<>'],
]);
const WRAPPED = /^[<([{"'`]+(.*?)[>)\]}"'`]+$/s;
const INVISIBLE = /\p{Cf}/gu;
const WILDCARD = /^[*%]+$/;
const LONGEST_PLACEHOLDER = 40;

/** The reason to refuse an ID, or undefined for one that is sent exactly as it is. `mostBytes` counts UTF-8. */
export function refusalOf(id: unknown, mostBytes: number): Refusal | undefined {
  if (id === undefined || id === null) return 'missing';
  if (typeof id !== 'string') return 'not_a_string';
  if (id === '') return 'empty';
  if (id.length > mostBytes || Buffer.byteLength(id) > mostBytes) return 'too_long';
  if (LONE_SURROGATE.test(id)) return 'not_unicode';
  if (BLANK.test(id)) return 'blank';
  if (CONTROL.test(id)) return 'control_characters';
  return isPlaceholder(id) ? 'null_like' : undefined;
}

function isPlaceholder(id: string): boolean {
  if (id.length > LONGEST_PLACEHOLDER) return false;
  // Normalised as a reader would see it: full-width letters or invisible characters do not make "null" an id.
  const bare = id.normalize('NFKC').replace(INVISIBLE, '').trim().toLowerCase();
  const inner = WRAPPED.exec(bare)?.[1] ?? bare;
  return PLACEHOLDERS.has(bare) || PLACEHOLDERS.has(inner) || WILDCARD.test(inner);
}
