import { isBlank, isPlaceholder } from '../../base/placeholder.ts';

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

const CONTROL = /\p{Cc}/u;
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The reason to refuse an ID, or undefined for one that is sent exactly as it is. `mostBytes` counts UTF-8. */
export function refusalOf(id: unknown, mostBytes: number): Refusal | undefined {
  if (id === undefined || id === null) return 'missing';
  if (typeof id !== 'string') return 'not_a_string';
  if (id === '') return 'empty';
  if (id.length > mostBytes || Buffer.byteLength(id) > mostBytes) return 'too_long';
  if (LONE_SURROGATE.test(id)) return 'not_unicode';
  if (isBlank(id)) return 'blank';
  if (CONTROL.test(id)) return 'control_characters';
  return isPlaceholder(id) ? 'null_like' : undefined;
}
