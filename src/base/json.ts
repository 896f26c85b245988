import { createHash } from 'node:crypto';

export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Parses a text as JSON; undefined for a text that is not JSON. */
export function tryParseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Parses a text as JSON; undefined for a text that is not JSON, or whose value is of another kind. */
export function parseJsonOfKind<T>(isKind: (value: unknown) => value is T, text: string): T | undefined {
  const value = tryParseJson(text);
  return isKind(value) ? value : undefined;
}

/** Parses a text from outside, perhaps with a byte order mark, as a JSON object; `{}` for any other text. */
export const parseJsonObject = (text: string): JsonObject =>
  parseJsonOfKind(isObject, text.replace(/^\uFEFF/, '')) ?? {};

/** SHA-256 (hex) of a value as JSON. */
export const sha256OfJson = (value: unknown): string =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex');
