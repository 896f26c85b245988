import validTable from '../../../../schemas/files-state.table.validator';
import { VERSION } from '../../../base/version.ts';
import type { PlaceState } from '../../../table/place-state.ts';
import {
  checked,
  damagedError,
  fromStored,
  parseJson,
  receiptOf,
  refuseNewer,
  type StoredState,
  toStored,
} from '../stored-state.ts';
import type { Action } from './protocol/entry.ts';

// The state as metadata domains of the log, as in schemas/files-state.json. Each receipt is a domain of its own, so
// that a commit writes only what it changes.

const PREFIX = 'dfinery.';
const TABLE = `${PREFIX}table`;
const DAY = `${PREFIX}day.`;
const FORMAT_VERSION = 3;

type Domains = ReadonlyMap<string, string>;

/** The actions that store what a change makes of the state. Profiles leave the receipt of those before. */
export function stateActions(before: Domains, state: PlaceState): Action[] {
  const { columns, cursor, changes, ...table } = toStored(state);
  const members: [string, unknown][] = [
    [TABLE, { v: FORMAT_VERSION, writer: VERSION, ...table }],
    ...Object.entries({ columns, cursor, changes }).map(([name, value]): [string, unknown] => [PREFIX + name, value]),
    ...[...state.receipts].map(([day, receipt]): [string, unknown] => [DAY + day, receipt]),
  ];
  const domains = new Map(members.map(([domain, value]) => [domain, JSON.stringify(value)]));
  const changed = [...domains].filter(([domain, configuration]) => before.get(domain) !== configuration);
  const removed = [...before].filter(([domain]) => domain.startsWith(DAY) && !domains.has(domain));
  const actionOf = ([domain, configuration]: [string, string], removed: boolean) => ({
    domainMetadata: { domain, configuration, removed },
  });
  return [...changed.map((entry) => actionOf(entry, false)), ...removed.map((entry) => actionOf(entry, true))];
}

/** The state in a log. Throws a configuration failure for one that this program cannot have stored. */
export function stateOf(domains: Domains, tableAddress: string): PlaceState {
  if (!domains.has(TABLE)) throw damagedError(tableAddress, 'it is a Delta table that this program did not make');
  const read = (domain: string) => parseJson(domains.get(domain) ?? '', `${tableAddress} (${domain})`);
  const table = read(TABLE);
  const where = `${tableAddress} (${TABLE})`;
  refuseNewer(table, FORMAT_VERSION, where);
  const [columns, cursor, changes] = ['columns', 'cursor', 'changes'].map((name) => read(PREFIX + name));
  const stored = { ...checked<StoredState>(validTable, table, where), columns, cursor, changes };
  const days = [...domains.keys()].filter((domain) => domain.startsWith(DAY));
  const receipts = days.map((domain) => {
    const receipt = receiptOf(read(domain), `${tableAddress} (${domain})`);
    if (DAY + receipt.day === domain) return receipt;
    throw damagedError(`${tableAddress} (${domain})`, `it is a receipt of ${receipt.day}`);
  });
  return fromStored(stored, receipts, tableAddress);
}
