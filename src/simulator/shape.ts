import { isDay } from '../base/days.ts';

/** Reads an unknown value; on a problem it adds a sentence and gives undefined. */
export type Shape<T> = (value: unknown, at: string, problems: string[]) => T | undefined;

/** A key of an object with what stands for it when absent. */
export interface Field<T> {
  readonly shape: Shape<T>;
  readonly fallback: T;
  readonly required?: boolean;
}

type Fields = Readonly<Record<string, Field<unknown>>>;
type Shaped<F extends Fields> = { readonly [K in keyof F]: F[K] extends Field<infer T> ? T : never };
type Kinds = Readonly<Record<string, Fields>>;
type Tagged<K extends Kinds> = { [N in keyof K]: { readonly kind: N } & Shaped<K[N]> }[keyof K];

export const field = <T>(shape: Shape<T>, fallback: T): Field<T> => ({ shape, fallback });
export const optional = <T>(shape: Shape<T>): Field<T | undefined> => ({ shape, fallback: undefined });
/** The fallback is never seen: a scenario with a problem is refused whole. */
export const required = <T>(shape: Shape<T>, unused: T): Field<T> => ({ shape, fallback: unused, required: true });

const shown = (value: unknown): string => {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
};

function wrong(at: string, value: unknown, wanted: string, problems: string[]): undefined {
  problems.push(`"${at}" is ${shown(value)}; wanted ${wanted}.`);
  return undefined;
}

export const flag: Shape<boolean> = (value, at, problems) =>
  typeof value === 'boolean' ? value : wrong(at, value, 'true or false', problems);

export const text: Shape<string> = (value, at, problems) =>
  typeof value === 'string' ? value : wrong(at, value, 'a text', problems);

export const day: Shape<string> = (value, at, problems) =>
  typeof value === 'string' && isDay(value) ? value : wrong(at, value, 'a day, yyyy-MM-dd', problems);

export const number =
  (least: number, most: number): Shape<number> =>
  (value, at, problems) =>
    typeof value === 'number' && value >= least && value <= most
      ? value
      : wrong(at, value, `a number from ${least} to ${most}`, problems);

export const whole =
  (least: number, most = Number.MAX_SAFE_INTEGER): Shape<number> =>
  (value, at, problems) =>
    typeof value === 'number' && Number.isSafeInteger(value) && value >= least && value <= most
      ? value
      : wrong(at, value, `a whole number from ${least} to ${most}`, problems);

export const oneOf =
  <const V extends readonly (string | number)[]>(...values: V): Shape<V[number]> =>
  (value, at, problems) => {
    const found = values.find((candidate) => candidate === value);
    return found === undefined ? wrong(at, value, `one of ${values.map(shown).join(', ')}`, problems) : found;
  };

export const listOf =
  <T>(item: Shape<T>): Shape<readonly T[]> =>
  (value, at, problems) => {
    if (!Array.isArray(value)) return wrong(at, value, 'a list', problems);
    const out: T[] = [];
    value.forEach((one: unknown, i) => {
      const read = item(one, `${at}[${i}]`, problems);
      if (read !== undefined) out.push(read);
    });
    return out;
  };

export const mapOf =
  <T>(item: Shape<T>): Shape<ReadonlyMap<string, T>> =>
  (value, at, problems) => {
    const entries = value instanceof Map ? [...value] : isObject(value) ? Object.entries(value) : undefined;
    if (entries === undefined) return wrong(at, value, 'an object', problems);
    const out = new Map<string, T>();
    for (const [key, one] of entries) {
      const read = item(one, `${at}.${key}`, problems);
      if (read !== undefined) out.set(String(key), read);
    }
    return out;
  };

/** One value or a list of them, read as a list. */
export const oneOrMore =
  <T>(item: Shape<T>): Shape<readonly T[]> =>
  (value, at, problems) =>
    listOf(item)(Array.isArray(value) ? value : [value], at, problems);

/** An object with no other keys than these; the result has every one of them. */
export function object<F extends Fields>(fields: F): Shape<Shaped<F>> {
  return (value, at, problems) => {
    if (!isObject(value)) return wrong(at, value, 'an object', problems);
    refuseUnknown(Object.keys(value), Object.keys(fields), at, problems);
    const entries = Object.entries(fields).map(([key, one]) => [
      key,
      readField(value[key], one, join(at, key), problems),
    ]);
    return Object.fromEntries(entries) as Shaped<F>;
  };
}

/** An object whose `kind` says which other keys it may have. */
export function tagged<K extends Kinds>(kinds: K): Shape<Tagged<K>> {
  return (value, at, problems) => {
    if (!isObject(value)) return wrong(at, value, 'an object', problems);
    const { kind, ...rest } = value;
    if (typeof kind !== 'string' || !Object.hasOwn(kinds, kind)) {
      return wrong(join(at, 'kind'), kind, `one of ${Object.keys(kinds).map(shown).join(', ')}`, problems);
    }
    const read = object(kinds[kind])(rest, at, problems);
    return read && ({ kind, ...read } as Tagged<K>);
  };
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function readField(value: unknown, one: Field<unknown>, at: string, problems: string[]): unknown {
  if (value !== undefined) return one.shape(value, at, problems) ?? one.fallback;
  if (one.required) problems.push(`"${at}" is missing.`);
  return one.fallback;
}

function refuseUnknown(found: readonly string[], known: readonly string[], at: string, problems: string[]): void {
  for (const key of found) {
    if (!known.includes(key)) problems.push(`"${join(at, key)}" is not known; here are known: ${known.join(', ')}.`);
  }
}

const join = (at: string, key: string) => (at === '' ? key : `${at}.${key}`);
