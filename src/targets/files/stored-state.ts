import validDay from '../../../schemas/files-state.day.validator';
import { configError, type UserError } from '../../base/errors.ts';
import { tryParseJson } from '../../base/json.ts';
import { problemTexts, type Validator } from '../../base/validator.ts';
import type { StoredReceipt } from '../../table/receipts.ts';

// What a place has stored, checked by schemas/files-state.json. Failures are of configuration, and name `subject`.

export const parseReceipt = (value: unknown, subject: string) => requireValid<StoredReceipt>(validDay, value, subject);

export function requireValid<T>(valid: Validator, value: unknown, subject: string): T {
  if (valid<T>(value)) return value;
  throw damagedError(subject, problemTexts(valid)[0]);
}

export function parseJson(text: string, subject: string): unknown {
  const value = tryParseJson(text);
  if (value === undefined) throw damagedError(subject, 'it is not JSON');
  return value;
}

/** Throws for what a later version of this program has written. `writtenVersion`: the version that this one writes. */
export function checkVersion(value: unknown, writtenVersion: number, subject: string): void {
  const version = (value as { readonly v?: unknown } | null)?.v;
  if (typeof version !== 'number' || version <= writtenVersion) return;
  throw configError(`${subject} has version ${version}, this program knows ${writtenVersion}: use the newer program.`);
}

/** The failure for something that this program cannot have stored. */
export const damagedError = (subject: string, why: string): UserError =>
  configError(
    `${subject} cannot be used: ${why}. Nothing was changed: restore it from a copy, or load into another place.`,
  );
