import validTable from '../../../../schemas/files-state.table.validator';
import type { Day } from '../../../base/days.ts';
import { VERSION } from '../../../base/version.ts';
import { parseState } from '../../../extract/export-state.ts';
import type { TableState } from '../../../table/place-state.ts';
import { receiptsOf } from '../../../table/receipts.ts';
import { FIRST_COLUMNS } from '../../../table/tables.ts';
import { changesOf, checked, columnsOf, damagedError, parseJson, receiptOf, refuseNewer } from '../stored-parts.ts';
import type { Action } from './protocol/entry.ts';

// The state as metadata domains of the log, as in schemas/files-state.json. Each receipt is a domain of its own, so
// that a commit writes only what it changes.

const PREFIX = 'dfinery.';
const TABLE = `${PREFIX}table`;
const DAY = `${PREFIX}day.`;

type Domains = ReadonlyMap<string, string>;

interface StoredTable {
  readonly timezone: string | null;
  readonly suppression_length?: number;
}

const domainsOf = ({ timezone, suppressionLength, columns, exportState, changes, receipts }: TableState) => {
  const table = {
    v: 3,
    writer: VERSION,
    timezone,
    ...(suppressionLength !== undefined && { suppression_length: suppressionLength }),
  };
  const entries: [string, unknown][] = [
    [TABLE, table],
    [`${PREFIX}columns`, columns],
    [`${PREFIX}cursor`, exportState ?? null],
    [`${PREFIX}changes`, changes],
    ...[...receipts].map(([day, receipt]): [string, unknown] => [DAY + day, receipt]),
  ];
  return entries.map(([domain, value]) => ({ domain, configuration: JSON.stringify(value), removed: false }));
};

/** The actions that store what a change makes of the state. Profiles leave the receipt of those before. */
export function stateActions(before: Domains, state: TableState): Action[] {
  const stored = domainsOf(state);
  const domains = new Set(stored.map(({ domain }) => domain));
  const gone = [...before].filter(([domain]) => domain.startsWith(DAY) && !domains.has(domain));
  return [
    ...stored.filter(({ domain, configuration }) => before.get(domain) !== configuration),
    ...gone.map(([domain, configuration]) => ({ domain, configuration, removed: true })),
  ].map((domainMetadata) => ({ domainMetadata }));
}

/** The state in a log. Throws a configuration failure for one that this program cannot have stored. */
export function stateOf(domains: Domains, place: string): TableState {
  const read = (domain: string): unknown => {
    const text = domains.get(domain);
    return text === undefined ? undefined : parseJson(text, `${place} (${domain})`);
  };
  const where = `${place} (${TABLE})`;
  if (!domains.has(TABLE)) throw damagedError(place, 'it is a Delta table that this program did not make');
  const table = read(TABLE);
  refuseNewer(table, 3, where);
  const { timezone, suppression_length: suppressionLength } = checked<StoredTable>(validTable, table, where);
  const days = [...domains.keys()].filter((domain) => domain.startsWith(DAY));
  const receipts = days.map((domain) => {
    const receipt = receiptOf(read(domain), `${place} (${domain})`);
    if (DAY + receipt.day !== domain)
      throw damagedError(`${place} (${domain})`, `it is a receipt of ${receipt.day satisfies Day}`);
    return receipt;
  });
  return {
    timezone,
    columns: columnsOf(read(`${PREFIX}columns`) ?? FIRST_COLUMNS, `${place} (${PREFIX}columns)`),
    receipts: receiptsOf(receipts),
    exportState: parseState(read(`${PREFIX}cursor`)),
    changes: changesOf(read(`${PREFIX}changes`) ?? [], `${place} (${PREFIX}changes)`),
    ...(suppressionLength !== undefined && { suppressionLength }),
  };
}
