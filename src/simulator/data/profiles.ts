import { hashText, hex8, mix, oneOf } from './hashing.ts';

/** Number of users, each with a profile. */
export const USERS = 2_000;

export const unifiedId = (user: number, seed: number): string => `u${hex8(mix(seed, user))}`;

/** The number by which the customer knows a user: the external id, with leading zeros. */
export const memberNumber = (user: number): string => String(user).padStart(8, '0');

const twoDigits = (n: number) => String(n).padStart(2, '0');
export const birthday = (hash: number): string =>
  `${1940 + ((hash >>> 8) % 75)}-${twoDigits(1 + ((hash >>> 15) % 12))}-${twoDigits(1 + ((hash >>> 20) % 28))}`;

const PEOPLE_NAMES = ['김민수', '이서연', '박지훈', 'Anna Lee', 'O\'Neill, "Jo"'];

interface Attribute {
  readonly profilesOf256: number;
  readonly textOf: (hash: number) => string;
}

/** The attributes of a profile. */
const ATTRIBUTES: Readonly<Record<string, Attribute>> = {
  df_birth: { profilesOf256: 150, textOf: birthday },
  df_gender: { profilesOf256: 200, textOf: (hash) => oneOf(['F', 'M'], hash) },
  df_membership: { profilesOf256: 120, textOf: (hash) => oneOf(['basic', 'gold', 'VIP'], hash) },
  df_name: { profilesOf256: 230, textOf: (hash) => oneOf(PEOPLE_NAMES, hash) },
  favourite_colour: { profilesOf256: 60, textOf: (hash) => oneOf(['빨강', 'navy', '#00ff00'], hash) },
};

/** The columns that a filter of properties selects from. */
export const PROFILE_PROPERTIES: readonly string[] = Object.keys(ATTRIBUTES);

/** The profile of a user, by column; an absent value is an empty text. */
export function profileOf(user: number, seed: number): Readonly<Record<string, string>> {
  const attributes = Object.entries(ATTRIBUTES).map(([name, { profilesOf256, textOf }]) => {
    const hash = mix(mix(seed, user), hashText(name));
    return [name, (hash & 0xff) < profilesOf256 ? textOf(hash) : ''];
  });
  return {
    df_unified_id: unifiedId(user, seed),
    df_external_id: memberNumber(user),
    ...Object.fromEntries(attributes),
  };
}
