import { DAY_MS } from '../base/clock.ts';
import type { Random } from '../base/runtime.ts';
import { drawFrom, drawNumber, hashOf, hexOf, mix, seededRandom } from './random.ts';

/** Number of users, each with a profile. */
export const USER_COUNT = 2_000;

export const unifiedId = (user: number): string => `u${hexOf(mix(hashOf('df_unified_id'), user))}`;

/** The number of a user as a text, with leading zeros. */
export const externalId = (user: number): string => String(user).padStart(8, '0');

/** Draws a day of the 75 years from 1940 on. */
export const drawBirthday = (random: Random): string =>
  new Date(Date.UTC(1940) + drawNumber(random, 75 * 365) * DAY_MS).toISOString().slice(0, 10);

/** The attributes of a profile: the share of profiles that have it, and how its text is drawn. */
const ATTRIBUTES: Readonly<Record<string, { readonly share: number; readonly draw: (random: Random) => string }>> = {
  df_birth: { share: 0.6, draw: drawBirthday },
  df_gender: { share: 0.8, draw: (random) => drawFrom(random, ['F', 'M']) },
  df_membership: { share: 0.5, draw: (random) => drawFrom(random, ['basic', 'gold', 'VIP']) },
  df_name: {
    share: 0.9,
    draw: (random) => drawFrom(random, ['김민수', '이서연', '박지훈', 'Anna Lee', 'O\'Neill, "Jo"']),
  },
  favourite_colour: { share: 0.2, draw: (random) => drawFrom(random, ['빨강', 'navy', '#00ff00']) },
};

/** The columns that a filter of properties selects from. */
export const PROFILE_PROPERTIES: readonly string[] = Object.keys(ATTRIBUTES);

/** The profile of a user, by column; an absent value is an empty text. */
export function profileOf(user: number): Readonly<Record<string, string>> {
  const attributes = Object.entries(ATTRIBUTES).map(([name, { share, draw }]) => {
    const random = seededRandom(user, hashOf(name));
    return [name, random() < share ? draw(random) : ''];
  });
  return { df_unified_id: unifiedId(user), df_external_id: externalId(user), ...Object.fromEntries(attributes) };
}
