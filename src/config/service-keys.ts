import { baseUrlProblem } from './base-url.ts';
import { type Problem, problemOf } from './problems.ts';

/** The problems of the address and of the tokens. The schema reports values of a wrong type. */
export function serviceProblems(values: Readonly<Record<string, unknown>>, keys: readonly string[]): Problem[] {
  return keys.flatMap((key) => {
    const clause = typeof values[key] === 'string' && clauseOf(key, values[key]);
    return clause ? [problemOf(key, clause)] : [];
  });
}

function clauseOf(key: string, value: string): string | undefined {
  if (/\p{Surrogate}/u.test(value)) return 'holds half a character: no request can carry it';
  if (key === 'base_url') return baseUrlProblem(value);
  if (!key.endsWith('_token')) return undefined;
  if (/^[\t ]|[\t ]$/.test(value)) return 'begins or ends with a blank, which no HTTP header keeps';
  if (/^bearer\s/i.test(value)) return 'begins with the word Bearer: give the token alone';
  if (/^[\t\x20-\x7e\x80-\xff]+$/.test(value)) return undefined;
  return 'holds a line end, or another character that no HTTP header can carry';
}
