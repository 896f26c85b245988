import validChanges from '../../../schemas/files-state.changes.validator';
import validColumns from '../../../schemas/files-state.columns.validator';
import validDay from '../../../schemas/files-state.day.validator';
import { configError, type UserError } from '../../base/errors.ts';
import { isObject, jsonOf } from '../../base/json.ts';
import { firstProblem, type Validator } from '../../base/validator.ts';
import { parseState } from '../../extract/export-state.ts';
import type { ColumnChange, PlaceState, StoredProfiles } from '../../table/place-state.ts';
import { receiptsOf, type StoredReceipt } from '../../table/receipts.ts';
import type { StoredColumn } from '../../table/tables.ts';

// What a place has stored, checked by schemas/files-state.json. All throw a configuration failure that names the part.

/** The members of a state that both formats store alike. */
export interface StoredState {
  readonly timezone: string | null;
  readonly suppression_length?: number;
  readonly columns: unknown;
  readonly cursor: unknown;
  readonly changes: unknown;
}

export const toStored = ({ timezone, suppressionLength, columns, exportState, changes }: PlaceState) => ({
  timezone,
  columns,
  cursor: exportState ?? null,
  changes,
  ...(suppressionLength !== undefined && { suppression_length: suppressionLength }),
});

export function fromStored(stored: StoredState, receipts: readonly StoredReceipt[], where: string): PlaceState {
  const { timezone, suppression_length: suppressionLength, cursor } = stored;
  return {
    timezone,
    columns: columnsFrom(stored.columns, where),
    receipts: receiptsOf(receipts),
    exportState: cursor == null ? undefined : parseState(cursor),
    changes: checked<ColumnChange[]>(validChanges, stored.changes, where),
    ...(suppressionLength !== undefined && { suppressionLength }),
  };
}

/** What a place holds of user profiles; undefined for anything else. */
export function storedProfilesOf(value: unknown, where: string): StoredProfiles | undefined {
  if (!isObject(value)) return undefined;
  const { columns, receipt, hashing } = value as Partial<StoredProfiles>;
  if (!Array.isArray(hashing?.columns)) throw damagedError(where, 'it does not say what is hashed');
  return { columns: columnsFrom(columns, where), receipt: receiptOf(receipt, where), hashing };
}

export const receiptOf = (value: unknown, where: string) => checked<StoredReceipt>(validDay, value, where);
const columnsFrom = (value: unknown, where: string) => checked<StoredColumn[]>(validColumns, value, where);

export function checked<T>(valid: Validator, value: unknown, where: string): T {
  if (valid<T>(value)) return value;
  throw damagedError(where, firstProblem(valid));
}

export function parseJson(text: string, where: string): unknown {
  const value = jsonOf(text);
  if (value === undefined) throw damagedError(where, 'it is not JSON');
  return value;
}

/** Throws for what a later version of this program has written. `latest`: the version that this one writes. */
export function refuseNewer(value: unknown, latest: number, where: string): void {
  const version = (value as { readonly v?: unknown } | null)?.v;
  if (typeof version !== 'number' || version <= latest) return;
  throw configError(`${where} has version ${version}, this program knows ${latest}: use the newer program.`);
}

/** The failure for something that this program cannot have stored. */
export const damagedError = (where: string, why: string): UserError =>
  configError(
    `${where} cannot be used: ${why}. Nothing was changed: restore it from a copy, or load into another place.`,
    { where: { file: where } },
  );
