import { addDays, type Day, daysOf, startOf } from '../../src/base/days.ts';
import type { Stored } from './owned-place.ts';
import { rowText, type Truth } from './truth.ts';

const HOUR = 3_600_000;

/** What a place holds after a run that ended well, and what is known about it. */
export interface Seen {
  readonly stored: Stored;
  readonly truth: Truth;
  readonly start: Day;
  readonly cursor: Day;
  /** When the last run that ended well began (ms UTC). */
  readonly readAt: number;
  /** Unified ids of people who were forgotten. */
  readonly forgotten: ReadonlySet<string>;
  /** Days whose rows a user removed. */
  readonly removed: ReadonlySet<Day>;
  /** Days that the service no longer exported when they were wanted. */
  readonly lost: ReadonlySet<Day>;
}

/** No row is missing, none is there twice, nobody is back, no day was passed over: each violation as one text. */
export function violations(seen: Seen): string[] {
  const days = daysOf(seen.start, addDays(seen.cursor, -1));
  return [...days.flatMap((day) => violationsOf(seen, day)), ...strangers(seen)];
}

function violationsOf({ stored, truth, cursor, readAt, removed, lost, forgotten }: Seen, day: Day): string[] {
  const storedRows = stored.get(day) ?? [];
  if (lost.has(day)) return [];
  if (removed.has(day)) return storedRows.map((text) => `${day} was removed, and has ${text}`);
  // The day before one that is lost could not be read again.
  const isSettled = day < addDays(cursor, -1) && !lost.has(addDays(day, 1));
  const at = isSettled ? readAt : startOf(day) + 36 * HOUR;
  const rows = truth.shown(day, at).filter(({ until }) => isSettled || until === undefined);
  const expectedRows = rows
    .filter(({ cells }) => !forgotten.has(cells.get('df_unified_id') ?? ''))
    .map(({ cells }) => rowText(cells));
  const missing = without(expectedRows, storedRows).map((text) => `${day} lacks ${text}`);
  // Rows come late and vanish only until the next day is over, and the day was read since.
  // A row that two days share stays under the earlier one if a user removed the later one.
  const next = addDays(day, 1);
  const shared = removed.has(next) ? truth.rows(next).map(({ cells }) => rowText(cells)) : [];
  const surplus = isSettled
    ? without(storedRows, [...expectedRows, ...shared]).map((text) => `${day} should not have ${text}`)
    : [];
  return [...missing, ...surplus];
}

/** Rows that are twice in the place, that never were, and those of people who were forgotten. */
function strangers({ stored, truth, forgotten }: Seen): string[] {
  const storedRows = [...stored.values()].flat();
  const days = [...stored.keys()].flatMap((day) => [addDays(day, -1), day, addDays(day, 1)]);
  const trueRows = [...new Set(days)].flatMap((day) => truth.rows(day).map(({ cells }) => rowText(cells)));
  return [
    ...without(storedRows, trueRows).map((text) => `a row that is twice or never was: ${text}`),
    ...storedRows
      .filter((text) => [...forgotten].some((id) => text.includes(`"${id}"`)))
      .map((text) => `is back: ${text}`),
  ];
}

/** The texts that are left when each of the others has taken one that is the same. */
function without(texts: readonly string[], others: readonly string[]): string[] {
  const counts = new Map<string, number>();
  for (const text of others) counts.set(text, (counts.get(text) ?? 0) + 1);
  return texts.filter((text) => {
    const count = counts.get(text) ?? 0;
    counts.set(text, count - 1);
    return count <= 0;
  });
}
