export type JsonObject = Readonly<Record<string, unknown>>;

/** True for an object of JSON: no list, not null. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
