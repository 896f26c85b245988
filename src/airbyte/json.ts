import { readFileSync } from 'node:fs';
import { configFailure, messageOf } from '../base/errors.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The platform and PyAirbyte write what is not set as an explicit null: read as absent. */
export const present = <T>(value: T | null | undefined): T | undefined => value ?? undefined;

export const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

/** Reads an input file of any extension; an empty file is undefined. The file is never written. */
export function readJsonInput(path: string, what: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, 'utf8').replace(/^\uFEFF/, '');
  } catch (error) {
    throw configFailure(`The ${what} file ${path} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
  if (text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message quotes the text around the fault, which may be a token.
    throw configFailure(`The ${what} file ${path} is not valid JSON.`);
  }
}
