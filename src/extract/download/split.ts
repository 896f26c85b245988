import type { Day } from '../../base/days.ts';
import { transientError } from '../../base/errors.ts';
import { exportRequest, type Filters } from '../export-request.ts';
import { type DaysRequest, type Download, type ExportFile, type NoDownload, noDownload } from './download.ts';
import { fetchExport, nameOf } from './fetch.ts';
import type { Run } from './run.ts';

/** Event names that the service is known to write (SERVICE.md); where a split starts from (S10). */
const KNOWN_NAMES: readonly string[] = [
  'df_start_session',
  'df_end_session',
  'df_sign_up',
  'df_purchase',
  'df_login',
  'df_logout',
  'df_view_home',
  'df_view_product_details',
  'df_add_to_cart',
  'df_add_to_wishlist',
  'df_refund',
  'df_view_search_result',
  'df_share_product',
  'df_view_list',
  'df_view_cart',
  'df_remove_cart',
  'df_add_payment_info',
];

/** The hash of an event name (S47), which the service does not know. */
const HASH = /^[0-9a-f]{64}$/;
/** Attempts at a part before it is split further; fewer than for a whole day, since the reason is known. */
const PART_ATTEMPTS = 2;

/** The request for one day of the plan that ends at `to`; if it is too large, it is split by event names. */
export const dayRequest = (day: Day, to: Day): DaysRequest => ({ from: day, to, through: day, splitByNames: true });

/** The export of some days under the user's own filter. Throws a UserError as `fetchExport` does. */
export async function fetchDays(
  run: Run,
  request: DaysRequest,
): Promise<Download | NoDownload<'gone' | 'invalid' | 'too_big'>> {
  const { from, to, through, splitByNames } = request;
  // After one day was too large, the next ones are tried whole only once.
  const splitAfter = splitByNames && run.known.nameGroups !== undefined ? 1 : undefined;
  const days = { first: from, last: through };
  const found = await fetchExport(run, exportRequest(run.plan.filters, from, to), { through, splitAfter });
  if (found.kind === 'file')
    return { kind: 'rows', from, to, files: [found], split: 'none', days, contains: undefined };
  if (found.kind !== 'too_big' || !splitByNames) return noDownload(days, found.kind, found.message);
  return { kind: 'rows', from, to, files: await fetchByNames(run, request), split: 'names', days, contains: undefined };
}

/**
 * One day in parts by event name: `include` groups of the names known or seen, halved until each can be exported, and
 * one `exclude` of all of them for the rest, all within the user's own filter. Throws when a single name is too big.
 */
async function fetchByNames(run: Run, request: DaysRequest): Promise<ExportFile[]> {
  const { filters } = run.plan;
  const wanted = namesWithin(filters, [...KNOWN_NAMES, ...run.plan.eventNames, ...run.known.names]);
  const parts: ExportFile[] = [];
  const valid: string[] = [];
  let groups = cut(wanted, Math.max(2, run.known.nameGroups ?? 2));
  let done = 0;
  while (groups.length > 0) {
    const [group, ...rest] = groups;
    const found = await fetchGroup(run, request, group);
    groups = found === 'smaller' ? [...cut(group, 2), ...rest] : rest;
    if (found === 'smaller' || found === 'unknown') continue;
    parts.push(found);
    valid.push(...group);
    done++;
  }
  const rest = restOf(filters, valid);
  if (rest !== undefined) parts.push(await fetchRest(run, request, rest));
  run.known.nameGroups = Math.max(1, done);
  return parts;
}

/** The names that a split may ask for, within the user's filter. */
function namesWithin(filters: Filters, names: readonly string[]): string[] {
  const all = [...new Set(names)].filter((name) => !HASH.test(name));
  if (filters.events.length === 0 || filters.eventsCondition === 'all') return all;
  if (filters.eventsCondition === 'include') return [...new Set(filters.events)];
  const excluded = new Set(filters.events);
  return all.filter((event) => !excluded.has(event));
}

/** The names to exclude in the request for the rest; undefined if the user's filter includes named events only. */
function restOf(filters: Filters, included: readonly string[]): string[] | undefined {
  const filtered = filters.events.length > 0;
  if (filtered && filters.eventsCondition === 'include') return undefined;
  const own = filtered && filters.eventsCondition === 'exclude' ? filters.events : [];
  return [...new Set([...own, ...included])];
}

async function fetchGroup(
  run: Run,
  request: DaysRequest,
  group: readonly string[],
): Promise<ExportFile | 'smaller' | 'unknown'> {
  const filters: Filters = { ...run.plan.filters, events: group, eventsCondition: 'include' };
  const options = { through: request.through, splitAfter: group.length === 1 ? undefined : PART_ATTEMPTS };
  const found = await fetchExport(run, exportRequest(filters, request.from, request.to), options);
  if (found.kind === 'file') return found;
  if (group.length > 1) return 'smaller';
  // A service that checks the names of a filter has no event of that name.
  if (found.kind === 'invalid') return 'unknown';
  throw transientError(
    `The events named ${group[0]} of ${nameOf(request)} cannot be exported, even without any others (${found.message}): nothing ` +
      'of the day was stored. Run again later; if that does not help, ask the provider, or leave them out with the events filter.',
    { where: { window: nameOf(request) } },
  );
}

async function fetchRest(run: Run, request: DaysRequest, excluded: readonly string[]): Promise<ExportFile> {
  const filters: Filters = {
    ...run.plan.filters,
    events: excluded,
    eventsCondition: excluded.length > 0 ? 'exclude' : 'all',
  };
  const found = await fetchExport(run, exportRequest(filters, request.from, request.to), { through: request.through });
  if (found.kind === 'file') return found;
  throw transientError(
    `The events of ${nameOf(request)} other than the ${excluded.length} names known cannot be exported (${found.message}): ` +
      'nothing of the day was stored; run again later, or name the events wanted with the events filter.',
    { where: { window: nameOf(request) } },
  );
}

/** Splits the list into at most `count` non-empty pieces of nearly equal length. */
function cut(names: readonly string[], count: number): string[][] {
  const size = Math.ceil(names.length / Math.max(1, count));
  const out: string[][] = [];
  for (let at = 0; at < names.length; at += size) out.push(names.slice(at, at + size));
  return out;
}
