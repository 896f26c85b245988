import type { Day } from '../../base/days.ts';
import { transientError } from '../../base/errors.ts';
import type { Filters } from '../../service/export/protocol.ts';
import { type LastRefusal, SPLIT_AFTER, type WaitBudget } from '../../service/export/retry.ts';
import { exportName } from '../export-request.ts';
import type { DaysRequest, Download, ExportFile } from './download.ts';
import { type Extraction, waitBudgetOf } from './extraction.ts';
import { fetchExport } from './fetch.ts';

/** Event names that the service is known to write, from its public pages; a split begins with them. */
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

/** An event name that `columns_hash` has replaced: the service does not know it. */
const HASHED_NAME = /^[0-9a-f]{64}$/;

/** The request for one day of the plan that ends at `to`; it is split by event names if it is too large. */
export const dayRequest = (day: Day, to: Day): DaysRequest => ({ from: day, to, through: day, splitByNames: true });

/** Exports some days under the user's own filter. Throws a UserError as `fetchExport` does. */
export async function fetchDays(
  extraction: Extraction,
  request: DaysRequest,
  waitBudget = waitBudgetOf(extraction, request.from),
): Promise<Download | LastRefusal> {
  const { from, to, through, splitByNames } = request;
  const splitAfter = splitByNames && extraction.facts.known.nameGroups !== undefined ? SPLIT_AFTER.nextDay : undefined;
  const whole = { ...extraction.plan.filters, from, to };
  const found = await fetchExport(extraction, whole, { through, splitAfter, waitBudget });
  const download = { kind: 'rows', from, to, days: { first: from, last: through }, contains: undefined } as const;
  if (found.kind === 'file') return { ...download, files: [found], split: 'none' };
  if (found.kind !== 'too_big' || !splitByNames) return found;
  return { ...download, files: await fetchByNames(extraction, request, waitBudget), split: 'names' };
}

/**
 * Exports one day in parts by event name: `include` groups of the names known or seen, halved until each can be
 * exported, and one `exclude` of all of them for the rest, all within the user's own filter. Throws if a single name is
 * too large.
 */
async function fetchByNames(
  extraction: Extraction,
  { from, to, through }: DaysRequest,
  waitBudget: WaitBudget,
): Promise<ExportFile[]> {
  const { filters, eventNames } = extraction.plan;
  const fetchPart = (part: Pick<Filters, 'events' | 'eventsCondition'>, splitAfter?: number) =>
    fetchExport(extraction, { ...filters, ...part, from, to }, { through, splitAfter, waitBudget });
  const day = exportName({ from, to });
  const parts: ExportFile[] = [];
  const included: string[] = [];
  const wanted = namesWithin(filters, [...KNOWN_NAMES, ...eventNames, ...extraction.facts.known.names]);
  const groups = chunks(wanted, Math.max(2, extraction.facts.known.nameGroups ?? 2));
  for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
    const isOne = group.length === 1;
    const found = await fetchPart(
      { events: group, eventsCondition: 'include' },
      isOne ? undefined : SPLIT_AFTER.partOfDay,
    );
    if (found.kind === 'file') {
      parts.push(found);
      included.push(...group);
    } else if (!isOne) groups.unshift(...chunks(group, 2));
    // A service that checks the names of a filter refuses one that has no event.
    else if (found.kind !== 'invalid') {
      throw transientError(
        `The events named ${group[0]} of ${day} cannot be exported, even without any others (${found.message}): nothing of the day ` +
          'was stored. Run again later; if that does not help, ask the provider, or leave them out with the events filter.',
        { where: { window: day } },
      );
    }
  }
  extraction.facts.recordNameGroups(parts.length);
  const { events, eventsCondition } = filters;
  if (eventsCondition === 'include' && events.length > 0) return parts;
  const excluded = [...new Set([...(eventsCondition === 'exclude' ? events : []), ...included])];
  const rest = await fetchPart({ events: excluded, eventsCondition: excluded.length > 0 ? 'exclude' : 'all' });
  if (rest.kind === 'file') return [...parts, rest];
  throw transientError(
    `The events of ${day} other than the ${excluded.length} names known cannot be exported (${rest.message}): ` +
      'nothing of the day was stored; run again later, or name the events wanted with the events filter.',
    { where: { window: day } },
  );
}

/** The names that a split may request within the user's filter. */
function namesWithin({ events, eventsCondition }: Filters, names: readonly string[]): string[] {
  if (eventsCondition === 'include' && events.length > 0) return [...new Set(events)];
  const excluded = new Set(eventsCondition === 'exclude' ? events : []);
  return [...new Set(names)].filter((name) => !HASHED_NAME.test(name) && !excluded.has(name));
}

/** Splits the list into at most `count` non-empty pieces of nearly equal length. */
function chunks(names: readonly string[], count: number): string[][] {
  const size = Math.ceil(names.length / Math.max(1, count));
  const out: string[][] = [];
  for (let at = 0; at < names.length; at += size) out.push(names.slice(at, at + size));
  return out;
}
