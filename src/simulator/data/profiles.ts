import { birthday, memberNumber, pick, unifiedId } from './columns.ts';
import { hashText, mix } from './hash.ts';

/** The attributes of a profile, and how many of 256 profiles have each. */
const ATTRIBUTES: readonly (readonly [name: string, fill: number, textOf: (h: number) => string])[] = [
  ['df_birth', 150, birthday],
  ['df_gender', 200, (h) => pick(['F', 'M'], h)],
  ['df_membership', 120, (h) => pick(['basic', 'gold', 'VIP'], h)],
  ['df_name', 230, (h) => pick(['김민수', '이서연', '박지훈', 'Anna Lee', 'O\'Neill, "Jo"'], h)],
  ['favourite_colour', 60, (h) => pick(['빨강', 'navy', '#00ff00'], h)],
];

/** The columns that a filter of properties selects from. */
export const PROFILE_PROPERTIES: readonly string[] = ATTRIBUTES.map(([name]) => name);

/** The profile of a user, by column; an absent value is an empty text. */
export function profileOf(user: number, seed: number): Readonly<Record<string, string>> {
  const attributes = ATTRIBUTES.map(([name, fill, textOf]) => {
    const h = mix(mix(seed, user), hashText(name));
    return [name, (h & 0xff) < fill ? textOf(h) : ''];
  });
  return {
    df_unified_id: unifiedId(user, seed),
    df_external_id: memberNumber(user),
    ...Object.fromEntries(attributes),
  };
}
