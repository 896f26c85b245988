import { createHash } from 'node:crypto';
import { type ColumnGroup, compareBytes, type HeaderColumn, ITEM_PREFIX } from '../../cells/columns/groups.ts';
import { foldName, ITEM_POSITION, UNNAMED } from '../../table/names.ts';

/** The streams of events, in the order in which `discover` lists them. */
export const EVENT_STREAMS = ['events', 'event_logs', 'event_items'] as const;
/** The stream of the export of profiles. */
export const PROFILE_STREAM = 'user_profiles';
type EventStreamName = (typeof EVENT_STREAMS)[number];
export type StreamName = EventStreamName | typeof PROFILE_STREAM;

export const isEventStream = (name: string): name is EventStreamName => EVENT_STREAMS.some((stream) => stream === name);

export const KEY = '_key';
export const RESCUED = '_rescued';

/** How a stream shows each group of columns. Whole: as it is. Bare: an item column without its prefix. */
const SHOWN = {
  events: eachGroup('whole'),
  user_profiles: eachGroup('whole'),
  event_logs: { ...eachGroup('whole'), standard_item: 'hidden', custom_item: 'hidden' },
  event_items: {
    ...eachGroup('hidden'),
    unified_id: 'whole',
    system: 'whole',
    standard_item: 'bare',
    custom_item: 'bare',
  },
} as const satisfies Record<StreamName, Record<ColumnGroup, 'whole' | 'bare' | 'hidden'>>;

function eachGroup<T extends string>(shown: T): Record<ColumnGroup, T> {
  return { unified_id: shown, system: shown, standard: shown, standard_item: shown, custom_item: shown, custom: shown };
}

const HASH_DIGITS = 6;

/**
 * The property of each column of a header in a stream; undefined if the stream does not show it. Names stay as the
 * customer wrote them. Readers take names that differ only in case for one. Of those, the one in lower case
 * (else the first in byte order) keeps its name. The others get the hash of their name in the export. `catalog` has the
 * configured properties. A day may lack some of such names, so the form that the catalog knows is used. No property has
 * two columns.
 */
export function propertyNames(
  stream: StreamName,
  header: readonly HeaderColumn[],
  catalog?: ReadonlySet<string>,
): (string | undefined)[] {
  const reserved = stream === 'event_items' ? [KEY, RESCUED, ITEM_POSITION] : [KEY, RESCUED];
  const plain = plainNames(stream, header, reserved);
  const names = [...plain];
  const taken = new Set(reserved.map(foldName));
  for (const i of inOrder(plain)) {
    let name = plain[i] ?? '';
    while (taken.has(foldName(name))) name = nameWithHash(name, hashedText(header[i]));
    taken.add(foldName(name));
    names[i] = name;
  }
  return catalog === undefined
    ? names
    : names.map((name, i) => configuredName(name, plain[i], header[i], names, catalog));
}

/** The name of a column that has the name of another one, made distinct by the hash of `source`. */
const nameWithHash = (name: string, source: string): string =>
  `${name}_${createHash('sha256').update(source).digest('hex').slice(0, HASH_DIGITS)}`;

const hashedText = ({ source, occurrence }: HeaderColumn): string =>
  occurrence < 3 ? source : `${source}#${occurrence}`;

/** The names before equal ones are made distinct. An item column keeps its prefix where its short name is taken. */
function plainNames(
  stream: StreamName,
  header: readonly HeaderColumn[],
  reserved: readonly string[],
): (string | undefined)[] {
  const shown = SHOWN[stream];
  const taken = new Set(reserved.map(foldName));
  for (const { group, source } of header) if (shown[group] === 'whole') taken.add(foldName(source));
  return header.map(({ group, source }) => {
    if (shown[group] === 'hidden') return undefined;
    if (shown[group] === 'whole') return source === '' ? UNNAMED : source;
    const short = source.slice(ITEM_PREFIX.length);
    return taken.has(foldName(short)) ? source : short;
  });
}

/** The indices of the names that are shown, those in lower case first, then by bytes. */
function inOrder(names: readonly (string | undefined)[]): number[] {
  const rank = (name: string) => (name === name.toLowerCase() ? 0 : 1);
  return names
    .flatMap((name, i) => (name === undefined ? [] : [{ name, i }]))
    .sort((a, b) => rank(a.name) - rank(b.name) || compareBytes(a.name, b.name))
    .map(({ i }) => i);
}

/** The other form of a name, with or without its hash, where the catalog has that alone. */
function configuredName(
  name: string | undefined,
  plain: string | undefined,
  column: HeaderColumn,
  names: readonly (string | undefined)[],
  catalog: ReadonlySet<string>,
): string | undefined {
  if (name === undefined || plain === undefined || catalog.has(name)) return name;
  const other = name === plain ? nameWithHash(name, hashedText(column)) : plain;
  return catalog.has(other) && !names.includes(other) ? other : name;
}
