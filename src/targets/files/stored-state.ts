import validDay from '../../../schemas/files-state.day.validator';
import validTable from '../../../schemas/files-state.table_state.validator';
import { configError, type UserError } from '../../base/errors.ts';
import { tryParseJson } from '../../base/json.ts';
import { firstProblemText, type Validator } from '../../base/validator.ts';
import { type TableJson, type TableState, tableFromJson } from '../../table/place-state.ts';
import type { StoredReceipt } from '../../table/receipts.ts';

// What a place has stored, checked by schemas/files-state.json. Failures are of configuration, and name the part.

export const parseReceipt = (value: unknown, where: string) => requireValid<StoredReceipt>(validDay, value, where);
export const parseTableState = (value: unknown, where: string): TableState =>
  tableFromJson(requireValid<TableJson>(validTable, value, where));

export function requireValid<T>(valid: Validator, value: unknown, where: string): T {
  if (valid<T>(value)) return value;
  throw damagedError(where, firstProblemText(valid));
}

export function parseJson(text: string, where: string): unknown {
  const value = tryParseJson(text);
  if (value === undefined) throw damagedError(where, 'it is not JSON');
  return value;
}

/** Throws for what a later version of this program has written. `writtenVersion`: the version that this one writes. */
export function checkVersion(value: unknown, writtenVersion: number, where: string): void {
  const version = (value as { readonly v?: unknown } | null)?.v;
  if (typeof version !== 'number' || version <= writtenVersion) return;
  throw configError(`${where} has version ${version}, this program knows ${writtenVersion}: use the newer program.`);
}

/** The failure for something that this program cannot have stored. */
export const damagedError = (where: string, why: string): UserError =>
  configError(
    `${where} cannot be used: ${why}. Nothing was changed: restore it from a copy, or load into another place.`,
  );
