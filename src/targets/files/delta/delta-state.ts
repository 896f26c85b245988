import validTable from '../../../../schemas/files-state.table.validator';
import { VERSION } from '../../../base/version.ts';
import { type TableJson, type TableState, tableToJson } from '../../../table/place-state.ts';
import { checkVersion, damagedError, parseJson, parseReceipt, parseTableState, requireValid } from '../stored-state.ts';
import type { Action } from './protocol/actions.ts';

// The state as metadata domains of the log, as in schemas/files-state.json. Each receipt is a domain of its own, so
// that a commit writes only what it changes.

const PREFIX = 'dfinery.';
const TABLE = `${PREFIX}table`;
const DAY_PREFIX = `${PREFIX}day.`;
const FORMAT_VERSION = 3;

/** The domain of what no other domain has. */
interface TableDomain extends Pick<TableJson, 'timezone'> {
  readonly suppression_length?: number;
}

type Domains = ReadonlyMap<string, string>;

/** What a log holds of its table. */
export interface LogState extends TableState {
  readonly suppressionLength?: number | undefined;
}

/** The actions that store what a change makes of the state. New profiles remove the receipt of those before. */
export function stateActions(before: Domains, { suppressionLength, ...state }: LogState): Action[] {
  const { timezone, days, ...members } = tableToJson(state);
  const table = { v: FORMAT_VERSION, writer: VERSION, timezone, suppression_length: suppressionLength };
  const domains = new Map([[TABLE, JSON.stringify(table)]]);
  for (const [name, value] of Object.entries(members)) domains.set(PREFIX + name, JSON.stringify(value));
  for (const receipt of days) domains.set(DAY_PREFIX + receipt.day, JSON.stringify(receipt));
  const changed = [...domains].filter(([domain, configuration]) => before.get(domain) !== configuration);
  const removed = [...before].filter(([domain]) => domain.startsWith(DAY_PREFIX) && !domains.has(domain));
  const actionOf = ([domain, configuration]: [string, string], removed: boolean) => ({
    domainMetadata: { domain, configuration, removed },
  });
  return [...changed.map((entry) => actionOf(entry, false)), ...removed.map((entry) => actionOf(entry, true))];
}

/** The state in a log. Throws a configuration failure for one that this program cannot have stored. */
export function stateOf(domains: Domains, tableAddress: string): LogState {
  if (!domains.has(TABLE)) throw damagedError(tableAddress, 'it is a Delta table that this program did not make');
  const read = (domain: string) => parseJson(domains.get(domain) ?? '', `${tableAddress} (${domain})`);
  const table = read(TABLE);
  const where = `${tableAddress} (${TABLE})`;
  checkVersion(table, FORMAT_VERSION, where);
  const [columns, cursor, changes] = ['columns', 'cursor', 'changes'].map((name) => read(PREFIX + name));
  const { timezone, suppression_length: suppressionLength } = requireValid<TableDomain>(validTable, table, where);
  const days = [...domains.keys()].filter((domain) => domain.startsWith(DAY_PREFIX));
  const receipts = days.map((domain) => {
    const receipt = parseReceipt(read(domain), `${tableAddress} (${domain})`);
    if (DAY_PREFIX + receipt.day === domain) return receipt;
    throw damagedError(`${tableAddress} (${domain})`, `it is a receipt of ${receipt.day}`);
  });
  const json = { timezone, columns, cursor, changes, days: receipts };
  return { ...parseTableState(json, tableAddress), suppressionLength };
}
