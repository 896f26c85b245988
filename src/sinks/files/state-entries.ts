import validChanges from '../../../schemas/delta-table.changes.validator';
import validColumns from '../../../schemas/delta-table.columns.validator';
import validWindow from '../../../schemas/delta-table.window.validator';
import type { UserError } from '../../base/errors.ts';
import { groupBy } from '../../base/group.ts';
import { jsonOf } from '../../base/json.ts';
import type { Validator } from '../../base/validator.ts';
import type { ExportState } from '../../extract/window.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn } from '../../table/columns.ts';
import type { StoredReceipt } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';

// A state as texts by name, for a log that keeps it in parts: what a commit does not change is not written again.

const EXPORT_STATE = 'cursor';
const WINDOW = 'window.';
const CHANGES = 'changes.';

export const isReceiptEntry = (name: string): boolean => name.startsWith(WINDOW);

/** Columns, receipts, export state and changes of a state; JSON by name. Without the rows that a window still has: files tell them. */
export function stateEntries({ columns, receipts, exportState, changes }: TableState): Map<string, string> {
  const byWindow = groupBy(changes, ({ window }) => window);
  const entries: [string, unknown][] = [
    ['columns', columns],
    [EXPORT_STATE, exportState],
    ...receipts.map(({ rows_live: _live, ...receipt }): [string, unknown] => [WINDOW + receipt.window, receipt]),
    ...[...byWindow].map(([window, own]): [string, unknown] => [CHANGES + window, { changes: own }]),
  ];
  return new Map(entries.map(([name, value]) => [name, JSON.stringify(value)]));
}

/** What makes texts by name others: the entries to write, and the names of those to remove. */
export function entryChanges(
  before: ReadonlyMap<string, string>,
  wanted: ReadonlyMap<string, string>,
): { readonly written: readonly [string, string][]; readonly removed: readonly string[] } {
  return {
    written: [...wanted].filter(([name, text]) => before.get(name) !== text),
    removed: [...before.keys()].filter((name) => !wanted.has(name)),
  };
}

/** The state of such texts. `failed`: the failure for an entry, by name, that is not what this program writes. Throws it. */
export function stateFrom(
  entries: ReadonlyMap<string, string>,
  failed: (name: string, why: string) => UserError,
): Pick<TableState, 'columns' | 'receipts' | 'exportState' | 'changes'> {
  const read = <T>(name: string, valid?: Validator): T | undefined => {
    const text = entries.get(name);
    if (text === undefined) return undefined;
    const value = jsonOf(text);
    if (value === undefined) throw failed(name, 'it is not JSON');
    if (valid === undefined || valid<T>(value)) return value as T;
    const [first] = valid.errors ?? [];
    throw failed(name, `its ${first?.instancePath.slice(1) ?? ''} ${first?.message ?? 'is wrong'}`);
  };
  const below = <T>(prefix: string, valid: Validator): T[] =>
    [...entries.keys()].filter((name) => name.startsWith(prefix)).flatMap((name) => read<T>(name, valid) ?? []);
  const changes = below<{ readonly changes: readonly ColumnChange[] }>(CHANGES, validChanges);
  return {
    columns: read<StoredColumn[]>('columns', validColumns) ?? FIRST_COLUMNS,
    receipts: below<StoredReceipt>(WINDOW, validWindow).sort((a, b) => a.window - b.window),
    exportState: read<ExportState | null>(EXPORT_STATE) ?? null,
    changes: changes
      .flatMap((own) => own.changes)
      .sort((a, b) => (a.changedAt < b.changedAt ? -1 : a.changedAt > b.changedAt ? 1 : 0)),
  };
}
