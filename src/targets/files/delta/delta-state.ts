import validTable from '../../../../schemas/files-state.table.validator';
import validState from '../../../../schemas/files-state.table_state.validator';
import { VERSION } from '../../../base/version.ts';
import { type TableJson, type TableState, tableFromJson, tableToJson } from '../../../table/place-state.ts';
import { checkVersion, damagedError, parseJson, parseReceipt, requireValid } from '../stored-state.ts';
import type { Action } from './protocol/actions.ts';

// The state as metadata domains of the log, as in schemas/files-state.json. Each receipt is a domain of its own, so
// that a commit writes only what it changes.

const DOMAIN_PREFIX = 'dfinery.';
/** The domain of what no other domain has. */
const TABLE_DOMAIN = `${DOMAIN_PREFIX}table`;
/** The domain of a receipt is this and its day. */
const DAY_DOMAIN_PREFIX = `${DOMAIN_PREFIX}day.`;
/** The members of a table that are a domain each. */
const MEMBERS_WITH_DOMAIN = ['columns', 'changes', 'cursor'] as const;
const FORMAT_VERSION = 3;

/** The content of `TABLE_DOMAIN`. */
type TableDomain = Pick<TableJson, 'timezone'> & { readonly suppression_length?: number };
type Domains = ReadonlyMap<string, string>;

/** What a log holds of its table. */
export interface LogState extends TableState {
  /** Undefined before the first purge, and for the profiles: the log of events has it for the whole place. */
  readonly suppressionLength?: number | undefined;
}

/** The actions that store what a change makes of the state. New profiles remove the receipt of those before. */
export function stateActions(domainsBefore: Domains, { suppressionLength, ...state }: LogState): Action[] {
  const json = tableToJson(state);
  const { timezone } = state;
  const tableDomain = { v: FORMAT_VERSION, writer: VERSION, timezone, suppression_length: suppressionLength };
  const domainsAfter = new Map([
    [TABLE_DOMAIN, JSON.stringify(tableDomain)],
    ...MEMBERS_WITH_DOMAIN.map((name) => [DOMAIN_PREFIX + name, JSON.stringify(json[name])] as const),
    ...json.days.map((receipt) => [DAY_DOMAIN_PREFIX + receipt.day, JSON.stringify(receipt)] as const),
  ]);
  const changed = [...domainsAfter].filter(([domain, configuration]) => domainsBefore.get(domain) !== configuration);
  const removed = [...domainsBefore].filter(
    ([domain]) => domain.startsWith(DAY_DOMAIN_PREFIX) && !domainsAfter.has(domain),
  );
  return [
    ...changed.map(([domain, configuration]) => ({ domainMetadata: { domain, configuration, removed: false } })),
    ...removed.map(([domain, configuration]) => ({ domainMetadata: { domain, configuration, removed: true } })),
  ];
}

/** The state in a log. Throws a configuration failure for one that this program cannot have stored. */
export function stateInDomains(domains: Domains, tableAddress: string): LogState {
  if (!domains.has(TABLE_DOMAIN))
    throw damagedError(tableAddress, 'it is a Delta table that this program did not make');
  const subjectOf = (domain: string) => `${tableAddress} (${domain})`;
  const readDomain = (domain: string) => parseJson(domains.get(domain) ?? '', subjectOf(domain));
  const tableDomain = readDomain(TABLE_DOMAIN);
  checkVersion(tableDomain, FORMAT_VERSION, subjectOf(TABLE_DOMAIN));
  const { timezone, suppression_length } = requireValid<TableDomain>(validTable, tableDomain, subjectOf(TABLE_DOMAIN));
  const members = Object.fromEntries(MEMBERS_WITH_DOMAIN.map((name) => [name, readDomain(DOMAIN_PREFIX + name)]));
  const dayDomains = [...domains.keys()].filter((domain) => domain.startsWith(DAY_DOMAIN_PREFIX));
  const days = dayDomains.map((domain) => {
    const receipt = parseReceipt(readDomain(domain), subjectOf(domain));
    if (DAY_DOMAIN_PREFIX + receipt.day === domain) return receipt;
    throw damagedError(subjectOf(domain), `it is a receipt of ${receipt.day}`);
  });
  const json = requireValid<TableJson>(validState, { timezone, ...members, days }, tableAddress);
  return { ...tableFromJson(json), suppressionLength: suppression_length };
}
