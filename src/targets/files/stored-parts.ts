import validChanges from '../../../schemas/files-state.changes.validator';
import validColumns from '../../../schemas/files-state.columns.validator';
import validDay from '../../../schemas/files-state.day.validator';
import { configError, type UserError } from '../../base/errors.ts';
import { isObject, jsonOf } from '../../base/json.ts';
import { firstProblem, type Validator } from '../../base/validator.ts';
import type { ColumnChange } from '../../table/changes.ts';
import type { StoredProfiles } from '../../table/place-state.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import type { StoredColumn } from '../../table/tables.ts';

// What a place has stored, checked by schemas/files-state.json. Each throws a configuration failure that names the part.

/** The failure for something that this program cannot have stored. */
export const damagedError = (where: string, why: string): UserError =>
  configError(
    `${where} cannot be used: ${why}. Nothing was changed: restore it from a copy, or load into another place.`,
    { where: { file: where } },
  );

export function parseJson(text: string, where: string): unknown {
  const value = jsonOf(text);
  if (value === undefined) throw damagedError(where, 'it is not JSON');
  return value;
}

export function checked<T>(valid: Validator, value: unknown, where: string): T {
  if (valid<T>(value)) return value;
  throw damagedError(where, firstProblem(valid));
}

/** Throws a configuration failure for something that a later version of this program has written. */
export function refuseNewer(value: unknown, known: number, where: string): void {
  const version = (value as { readonly v?: unknown } | null)?.v;
  if (typeof version !== 'number' || version <= known) return;
  throw configError(`${where} has version ${version}, this program knows ${known}: use the newer program.`);
}

/** What a place holds of user profiles; undefined for anything else. */
export function storedProfilesOf(value: unknown, where: string): StoredProfiles | undefined {
  if (!isObject(value)) return undefined;
  const { columns, receipt, hashing } = value as Partial<StoredProfiles>;
  if (hashing === undefined || !Array.isArray(hashing.columns))
    throw damagedError(where, 'it does not say what is hashed');
  return { columns: columnsOf(columns, where), receipt: receiptOf(receipt, where), hashing };
}

export const receiptOf = (value: unknown, where: string) => checked<StoredReceipt>(validDay, value, where);
export const columnsOf = (value: unknown, where: string) => checked<StoredColumn[]>(validColumns, value, where);
export const changesOf = (value: unknown, where: string) => checked<ColumnChange[]>(validChanges, value, where);
