import { createHash } from 'node:crypto';
import { type HeaderColumn, ITEM_PREFIX, LOG_ID, SERVER_DATETIME } from '../../cells/columns/groups.ts';
import type { ColumnGroup } from '../../cells/types/known-columns.ts';
import type { TableName } from '../../table/columns.ts';
import { compareBytes, foldName, ITEM_POSITION, UNNAMED } from '../../table/names.ts';

/** The streams, in the order in which `discover` lists them. */
export const STREAM_NAMES: readonly TableName[] = ['events', 'event_logs', 'event_items'];
/** A stream has the rows of the table of its name. */
export type StreamName = TableName;

export const KEY = '_key';
export const RESCUED = '_rescued';

/** How a stream shows each group of columns: not at all, as it is, or an item column without its prefix. */
const SHOWN = {
  events: all('whole'),
  event_logs: { ...all('whole'), standard_item: 'hidden', custom_item: 'hidden' },
  event_items: {
    ...all('hidden'),
    unified_id: 'whole',
    system: 'whole',
    standard_item: 'bare',
    custom_item: 'bare',
  },
} as const satisfies Record<StreamName, Record<ColumnGroup, 'whole' | 'bare' | 'hidden'>>;

function all<T extends string>(shown: T): Record<ColumnGroup, T> {
  return { unified_id: shown, system: shown, standard: shown, standard_item: shown, custom_item: shown, custom: shown };
}

const OWN_NAMES: readonly string[] = [KEY, RESCUED];
/** The columns that a stream names as its cursor or its key: they come first among names that fold alike. */
const CURSOR_AND_KEY: readonly string[] = [SERVER_DATETIME, LOG_ID];
const HASH_DIGITS = 6;

/**
 * The property of each column of a header in a stream, or undefined if the stream does not show the column. Names stay
 * as the customer wrote them, with these exceptions: `event_name`, the names of this program's own properties, equal
 * names, and names that fold alike, which readers would merge into one column. All of these but the first, in
 * order of their bytes (the cursor and the key of a stream before all others), get the hash of the name in the export,
 * so that no other column of the same day, present or absent, changes them. `catalog` has the configured properties;
 * the form that it has is used, since one header need not have all of the names that fold alike. No property has two
 * columns.
 */
export function propertyNames(
  stream: StreamName,
  header: readonly HeaderColumn[],
  catalog?: ReadonlySet<string>,
): (string | undefined)[] {
  const shown = SHOWN[stream];
  const sources = header.map((column) => column.source);
  const wanted = header.map((column) => {
    if (shown[column.group] === 'hidden') return undefined;
    return column.source === '' ? UNNAMED : column.source;
  });
  const bare = header.map((column) => shown[column.group] === 'bare');
  const fixed = wanted.filter((name, index): name is string => name !== undefined && !bare[index]);
  const own = stream === 'event_items' ? [...OWN_NAMES, ITEM_POSITION] : OWN_NAMES;
  const names = unique(withoutPrefix(wanted, bare, [...own, ...fixed]), sources, own);
  return catalog === undefined ? distinctNames(names, sources, own) : configuredNames(names, sources, own, catalog);
}

/** Drops the prefix of item columns, unless the rest is another column's name (compared by `foldName`). */
function withoutPrefix(
  names: readonly (string | undefined)[],
  bare: readonly boolean[],
  taken: readonly string[],
): (string | undefined)[] {
  const others = new Set(taken.map(foldName));
  return names.map((name, index) => {
    if (name === undefined || !bare[index]) return name;
    const rest = name.slice(ITEM_PREFIX.length);
    return others.has(foldName(rest)) ? name : rest;
  });
}

function unique(
  names: readonly (string | undefined)[],
  sources: readonly string[],
  own: readonly string[],
): (string | undefined)[] {
  const used = new Set<string>(own);
  return names.map((name, i) => {
    if (name === undefined) return undefined;
    let free = name;
    for (let n = 2; used.has(free); n++) free = nameWithHash(name, n === 2 ? sources[i] : `${sources[i]}#${n}`);
    used.add(free);
    return free;
  });
}

/** The name of a column that folds like another one, made distinct by the hash of `source`. */
export const nameWithHash = (name: string, source: string): string =>
  `${name}_${createHash('sha256').update(source).digest('hex').slice(0, HASH_DIGITS)}`;

function distinctNames(
  names: readonly (string | undefined)[],
  sources: readonly string[],
  own: readonly string[],
): (string | undefined)[] {
  const used = new Set(own.map(foldName));
  const out = [...names];
  const order = names.flatMap((name, i) => (name === undefined ? [] : [{ name, i }]));
  for (const { name, i } of order.sort((a, b) => compareNames(a.name, b.name))) {
    const free = used.has(foldName(name)) ? nameWithHash(name, sources[i]) : name;
    used.add(foldName(free));
    out[i] = free;
  }
  return out;
}

/** The order in which names that fold alike get one name after the other. */
function compareNames(a: string, b: string): number {
  const rank = (name: string) => (CURSOR_AND_KEY.includes(name) ? 0 : 1);
  return rank(a) - rank(b) || compareBytes(a, b);
}

/** The form of each name that the catalog has; of a name that it lacks, one that it has for no other column. */
function configuredNames(
  names: readonly (string | undefined)[],
  sources: readonly string[],
  own: readonly string[],
  catalog: ReadonlySet<string>,
): (string | undefined)[] {
  const present = new Set(names);
  const taken = new Set<string>();
  const isFree = (name: string) => catalog.has(name) && !taken.has(name);
  let first: ReadonlyMap<string, string> | undefined;
  // With its hash, a name may be that of the second of two equal names, which has the hash in any case.
  const isOwn = (name: string, withHash: string, source: string) => {
    if (!present.has(withHash) || catalog.has(nameWithHash(withHash, source))) return true;
    first ??= firstByFold(own, [...present, ...catalog]);
    return first.get(foldName(name)) !== name;
  };
  return names.map((name, i) => {
    if (name === undefined) return undefined;
    if (isFree(name)) {
      taken.add(name);
      return name;
    }
    const withHash = nameWithHash(name, sources[i]);
    if (isFree(withHash) && isOwn(name, withHash, sources[i])) {
      taken.add(withHash);
      return withHash;
    }
    return [name, withHash].find((form) => !catalog.has(form));
  });
}

/** Of the names that fold alike the first one: an own name, or the first in order. */
function firstByFold(own: readonly string[], names: readonly (string | undefined)[]): ReadonlyMap<string, string> {
  const first = new Map<string, string>();
  for (const name of [...own, ...names.filter((one) => one !== undefined).sort(compareNames)]) {
    const folded = foldName(name);
    if (!first.has(folded)) first.set(folded, name);
  }
  return first;
}
