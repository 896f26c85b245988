import type { JsonObject } from '../base/json.ts';

/** A key of a scenario: the JSON schema of its values, which are of type T. */
export interface Key<T> {
  readonly schema: JsonObject;
  /** Carries the type alone; it never has a value. */
  readonly value?: T;
}

type Keys = Readonly<Record<string, Key<unknown>>>;

/** The type of an object with these keys. */
export type ValuesOf<K extends Keys> = { readonly [N in keyof K]: K[N] extends Key<infer T> ? T : never };

/** Makes a key; `description` says, for a refusal, what is wanted. */
const key = <T>(description: string, schema: JsonObject): Key<T> => ({ schema: { description, ...schema } });

/** Removes the default of a key, for a value that must be given, or for an element of a list. */
const bare = <T>({ schema: { default: _default, ...schema } }: Key<T>): Key<T> => ({ schema });

/** A key that may be absent, without a default. */
export const optional = <T>(of: Key<T>): Key<T | undefined> => bare(of);

const numeric =
  (type: 'integer' | 'number', name: string) =>
  (value: number, minimum = 0, maximum = Number.MAX_SAFE_INTEGER): Key<number> =>
    key(`${name} from ${minimum} to ${maximum}`, { type, minimum, maximum, default: value });

export const number = numeric('number', 'a number');
export const whole = numeric('integer', 'a whole number');
export const share = (value: number): Key<number> => number(value, 0, 1);
export const text = (value: string): Key<string> => key('a text', { type: 'string', default: value });
export const flag = (value: boolean): Key<boolean> => key('true or false', { type: 'boolean', default: value });
export const TEXT = bare(text(''));
export const DAY = key<string>('a day, yyyy-MM-dd', { type: 'string', format: 'date' });

/** One of the values; the first is the default. */
export const choice = <const T extends string | number>(...values: readonly T[]): Key<T> =>
  key(`one of ${values.map((value) => JSON.stringify(value)).join(', ')}`, { enum: values, default: values[0] });

export const list = <T>(item: Key<T>): Key<readonly T[]> =>
  key('a list', { type: 'array', items: bare(item).schema, default: [] });

export const map = <T>(value: Key<T>): Key<Readonly<Record<string, T>>> =>
  key('an object', { type: 'object', additionalProperties: bare(value).schema, default: {} });

export const oneOrMany = <T>(item: Key<T>): Key<T | readonly T[] | undefined> =>
  key(`${item.schema.description}, or a list of such`, { anyOf: [bare(item).schema, bare(list(item)).schema] });

export const properties = (keys: Keys): JsonObject =>
  Object.fromEntries(Object.entries(keys).map(([name, { schema }]) => [name, schema]));

/** A section of keys; `required` names those that must be given. */
export const section = <K extends Keys>(keys: K, ...required: readonly (keyof K & string)[]): Key<ValuesOf<K>> => {
  const given = Object.fromEntries(required.map((name) => [name, bare(keys[name])]));
  const rest = { additionalProperties: false, properties: properties({ ...keys, ...given }), default: {} };
  return key('an object', { type: 'object', ...rest, ...(required.length > 0 && { required }) });
};
