import valid from '../../../schemas/delta-table.table.validator';
import { configError } from '../../base/errors.ts';
import { firstProblem } from '../../base/validator.ts';
import { VERSION } from '../../base/version.ts';
import type { TableName } from '../../table/columns.ts';
import { receiptsWith } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import { entryChanges, stateEntries, stateFrom, windowRowsOf } from '../files/log-entries.ts';
import { type Action, damagedError, parseJson } from './protocol/entry.ts';

/** The description of a table in its log. Schema: schemas/delta-table.json. */
export interface TableInfo {
  readonly v: 2;
  readonly writer: string;
  readonly table: TableName;
  /** Zone of all datetimes that name none, fixed by the first load; only in `events`. */
  readonly timezone?: string | null;
  /** The tables that are kept; only in `events`. */
  readonly tables?: readonly TableName[];
  /** Rows of each window that the latest change left; only in `events`, and absent in a log of earlier versions. */
  readonly live?: Readonly<Record<string, number>>;
  /** Id of the latest change of `events`: two writers may both take a version for theirs. */
  readonly change_id?: string;
  /** The version of `events` from which another table follows, and the change that made that version. */
  readonly source?: number;
  readonly source_change_id?: string;
}

const DOMAIN_PREFIX = 'dfinery.';
const TABLE = `${DOMAIN_PREFIX}table`;

export type Domains = ReadonlyMap<string, string>;

/** The description of a table; undefined for one of another program. Throws UserError for a later version. */
export function tableInfoOf(domains: Domains, place: string): TableInfo | undefined {
  const text = domains.get(TABLE);
  if (text === undefined) return undefined;
  const value = parseJson(text, place);
  const version = (value as { v?: unknown } | null)?.v;
  if (typeof version === 'number' && version > 2) {
    throw configError(`${place} was written by a later version (${version}) of this program: update it.`);
  }
  if (valid<TableInfo>(value)) return value;
  throw damagedError(`${place} (${TABLE})`, firstProblem(valid));
}

export const entriesOf = (domains: Iterable<readonly [string, string]>): Map<string, string> =>
  new Map(
    [...domains].flatMap(([domain, text]) =>
      domain.startsWith(DOMAIN_PREFIX) ? [[domain.slice(DOMAIN_PREFIX.length), text]] : [],
    ),
  );

/**
 * Reads the state in the log of `events`; `liveRows` has the rows of each window in its files, which are fewer than
 * those of the receipts where another program has removed some. Throws UserError.
 */
export function stateOfDomains(domains: Domains, liveRows: ReadonlyMap<number, number>, place: string): TableState {
  const info = tableInfoOf(domains, place);
  const { receipts, ...stored } = stateFrom(entriesOf(domains), (name, why) =>
    damagedError(`${place} (${DOMAIN_PREFIX}${name})`, why),
  );
  return {
    ...stored,
    timezone: info?.timezone ?? null,
    tables: info?.tables ?? [],
    receipts: receiptsWith(receipts, info?.live === undefined ? liveRows : windowRowsOf(info.live)),
    // Event names are values of the data, which the log must not hold, since it keeps them for good.
    eventNames: [],
  };
}

export function stateActions(domains: Domains, state: TableState, changeId: string): Action[] {
  const { timezone, tables } = state;
  const kept = state.receipts.filter((receipt) => receipt.rows_live > 0);
  const live = Object.fromEntries(kept.map(({ window: windowNumber, rows_live: rows }) => [windowNumber, rows]));
  const info: TableInfo = { v: 2, writer: VERSION, table: 'events', timezone, tables, live, change_id: changeId };
  const before = entriesOf(domains);
  const { written, removed } = entryChanges(before, stateEntries(state).set('table', JSON.stringify(info)));
  return [
    ...written.map(([name, text]) => domainAction(DOMAIN_PREFIX + name, text)),
    ...removed.map((name) => domainAction(DOMAIN_PREFIX + name, before.get(name) ?? '', { removed: true })),
  ];
}

/** The action that stores from which version of `events` another table follows. */
export function derivedAction(table: TableName, source: number, changeId: string): Action {
  const info: TableInfo = { v: 2, writer: VERSION, table, source, source_change_id: changeId };
  return domainAction(TABLE, JSON.stringify(info));
}

const domainAction = (domain: string, configuration: string, { removed = false } = {}): Action => ({
  domainMetadata: { domain, configuration, removed },
});
