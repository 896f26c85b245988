import schema from '../../../schemas/delta-table.json' with { type: 'json' };
import { configFailure } from '../../base/errors.ts';
import { VERSION } from '../../base/version.ts';
import { compileSchema, proved } from '../../config/validate.ts';
import type { State } from '../../extract/window.ts';
import type { ColumnChange } from '../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn, type TableName } from '../../table/columns.ts';
import { receiptsWith, type StoredReceipt } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import type { Action } from './protocol/actions.ts';
import { damaged, parseJson } from './protocol/parse.ts';

/** The description of a table in its log. Schema: schemas/delta-table.json. */
export interface TableInfo {
  readonly v: 2;
  /** Version of the program that wrote it. */
  readonly writer: string;
  readonly table: TableName;
  /** Only of `events`: zone of all datetimes without one; fixed by the first load. */
  readonly timezone?: string | null;
  /** Of `events`: the tables that are kept. */
  readonly tables?: readonly TableName[];
  /** Of `events`: names its latest change. Versions alone do not: of two writers each may take its own for the next one. */
  readonly change_id?: string;
  /** Of the others: the version of `events` that they follow from, and the change that made it. */
  readonly source?: number;
  readonly source_change_id?: string;
}

const TABLE = 'dfinery.table';
const CURSOR = 'dfinery.cursor';
const COLUMNS = 'dfinery.columns';
const WINDOW = 'dfinery.window.';
const CHANGES = 'dfinery.changes.';

const validOf = (name: 'table' | 'columns' | 'window' | 'changes') => compileSchema(schema.definitions[name]);
const VALID = {
  table: validOf('table'),
  columns: validOf('columns'),
  window: validOf('window'),
  changes: validOf('changes'),
};

export const isReceiptDomain = (domain: string): boolean => domain.startsWith(WINDOW);

/** Configuration texts by domain. */
export type Domains = ReadonlyMap<string, string>;

/** Undefined for a table of another program. Throws Failure for one of another version of this program. */
export function tableInfoOf(domains: Domains, place: string): TableInfo | undefined {
  const text = domains.get(TABLE);
  if (text === undefined) return undefined;
  const value = parseJson(text, place);
  const version = proved<{ v?: unknown } | null>(value)?.v;
  if (typeof version === 'number' && version > 2) {
    throw configFailure(`${place} was written by a later version (${version}) of this program: update it.`);
  }
  if (version === 1) {
    throw configFailure(
      `${place} was written by an older version of this program, whose format is not read any more: load the days into another place.`,
    );
  }
  return checked<TableInfo>('table', value, place);
}

/** The state that the log of `events` holds; `live`: rows of each window in its files. Throws Failure. */
export function stateOf(domains: Domains, live: ReadonlyMap<number, number>, place: string): TableState {
  const info = tableInfoOf(domains, place);
  const read = <T>(domain: string, name?: keyof typeof VALID): T | undefined => {
    const text = domains.get(domain);
    if (text === undefined) return undefined;
    const value = parseJson(text, `${place} (${domain})`);
    return name === undefined ? proved<T>(value) : checked<T>(name, value, place);
  };
  const below = <T>(prefix: string, name: keyof typeof VALID): T[] =>
    [...domains.keys()].filter((domain) => domain.startsWith(prefix)).flatMap((domain) => read<T>(domain, name) ?? []);
  const receipts = below<StoredReceipt>(WINDOW, 'window').sort((a, b) => a.window - b.window);
  const changes = below<{ readonly changes: readonly ColumnChange[] }>(CHANGES, 'changes').flatMap(
    (own) => own.changes,
  );
  return {
    timezone: info?.timezone ?? null,
    tables: info?.tables ?? [],
    columns: read<StoredColumn[]>(COLUMNS, 'columns') ?? FIRST_COLUMNS,
    receipts: receiptsWith(receipts, live),
    // Names of events are values of the data, which the log does not hold: it keeps them for good.
    eventNames: [],
    cursor: read<State | null>(CURSOR) ?? null,
    changes: changes.sort((a, b) => (a.changedAt < b.changedAt ? -1 : a.changedAt > b.changedAt ? 1 : 0)),
  };
}

function checked<T>(name: keyof typeof VALID, value: unknown, place: string): T {
  const valid = VALID[name];
  if (valid(value)) return proved<T>(value);
  const [first] = valid.errors ?? [];
  throw damaged(place, `its ${name} ${first?.instancePath.slice(1) ?? ''} ${first?.message ?? 'is wrong'}`);
}

/** The actions that make the domains of `events` hold a state. */
export function stateActions(domains: Domains, state: TableState, changeId: string): Action[] {
  const wanted = new Map<string, string>();
  const set = (domain: string, value: unknown) => wanted.set(domain, JSON.stringify(value));
  const { timezone, tables } = state;
  set(TABLE, { v: 2, writer: VERSION, table: 'events', timezone, tables, change_id: changeId });
  set(CURSOR, state.cursor);
  set(COLUMNS, state.columns);
  // The rows that a window still has are counted in the tags of the files.
  for (const { rows_live: _live, ...receipt } of state.receipts) set(`${WINDOW}${receipt.window}`, receipt);
  const changes = new Map<string, ColumnChange[]>();
  for (const change of state.changes) changes.set(change.window, [...(changes.get(change.window) ?? []), change]);
  for (const [window, own] of changes) set(`${CHANGES}${window}`, { changes: own });
  const removed = [...domains].filter(([domain]) => domain.startsWith('dfinery.') && !wanted.has(domain));
  return [
    ...[...wanted].flatMap(([domain, text]) => (domains.get(domain) === text ? [] : [domainAction(domain, text)])),
    ...removed.map(([domain, text]) => domainAction(domain, text, true)),
  ];
}

/** The action that says which version of `events` another table follows from. */
export function derivedAction(table: TableName, source: number, changeId: string): Action {
  const info: TableInfo = { v: 2, writer: VERSION, table, source, source_change_id: changeId };
  return domainAction(TABLE, JSON.stringify(info));
}

const domainAction = (domain: string, configuration: string, removed = false): Action => ({
  domainMetadata: { domain, configuration, removed },
});
