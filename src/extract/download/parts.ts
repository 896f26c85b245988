import { addDays, type Day } from '../../base/days.ts';
import { transientError, type UserError } from '../../base/errors.ts';
import type { EventRequest, ExportFilters } from '../../service/export/export-service.ts';
import type { CheckedFile } from '../checked-day.ts';
import { filtersAnything } from '../export-settings.ts';
import { checkedFileOf, removeFiles, type SpooledDownload } from '../spool.ts';

/** Event names that the service is known to write. */
const KNOWN_EVENT_NAMES: readonly string[] = [
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

/**
 * Downloads a day that is too large in parts, within the user's own filter: each known event name with `include`, the
 * rest with `exclude`. `eventNames`: those that this run has seen. Returns the failure if a part cannot be exported, or
 * if none came as CSV.
 */
export async function downloadParts(
  day: Day,
  { events, eventsCondition }: ExportFilters,
  eventNames: ReadonlySet<string>,
  download: (overrides: Partial<EventRequest>) => Promise<SpooledDownload>,
): Promise<readonly CheckedFile[] | UserError> {
  const userCondition = filtersAnything(events, eventsCondition) ? eventsCondition : 'all';
  /** What the last part leaves out: the names that the user excludes, then those of the parts before it. */
  const excludedNames = new Set(userCondition === 'exclude' ? events : []);
  const knownNames = [...KNOWN_EVENT_NAMES, ...eventNames].filter((name) => !excludedNames.has(name));
  const files: CheckedFile[] = [];
  let lastClause = '';
  // The last part has no name.
  for (const name of new Set(userCondition === 'include' ? events : [...knownNames, undefined])) {
    const filter = name === undefined ? allBut(excludedNames) : onlyOf(name);
    const firstDownload = await download(filter);
    // One empty answer proves nothing, least of all from a service that could not export the day.
    const part = firstDownload.kind === 'empty' ? await download(filter) : firstDownload;
    // A service that checks the names of a filter refuses one that has no event, also in the last part.
    const isRefusedName = part.kind === 'invalid' && name !== undefined;
    if (name !== undefined && !isRefusedName) excludedNames.add(name);
    if (part.kind === 'checked') {
      files.push(checkedFileOf(part));
      continue;
    }
    lastClause = part.clause;
    if (part.kind === 'empty' || isRefusedName) continue;
    await removeFiles(files);
    return tooLargeError(day, name === undefined ? 'of all other names' : `named ${name}`, lastClause);
  }
  // A day that is too large has rows: parts without any file say nothing about it.
  return files.length > 0 ? files : tooLargeError(day, 'of every name', lastClause);
}

const onlyOf = (name: string): Partial<EventRequest> => ({ events: [name], eventsCondition: 'include' });

const allBut = (names: ReadonlySet<string>): Partial<EventRequest> => ({
  events: [...names],
  eventsCondition: names.size > 0 ? 'exclude' : 'all',
});

function tooLargeError(day: Day, whichEvents: string, clause: string): UserError {
  const problem = `The events ${whichEvents} of ${day} cannot be exported by themselves (${clause}): nothing of the day was stored.`;
  return transientError(
    `${problem} Run again later; if that does not help, ask the provider for a CSV file of the day and load it: load … --day ${day}.`,
    { where: { day }, platformMessage: `${problem} Run again later. ${adviceToSkip(day)}` },
  );
}

/** The advice to who has a platform, where no file of a day can be loaded. */
export const adviceToSkip = (day: Day): string =>
  `To go on without the day, set start_date to ${addDays(day, 1)}, and clear the stream's state in the platform.`;
