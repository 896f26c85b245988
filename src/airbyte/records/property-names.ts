import { createHash } from 'node:crypto';
import { type ColumnGroup, compareBytes, type HeaderColumn, ITEM_PREFIX } from '../../cells/columns/groups.ts';
import { foldName, ITEM_POSITION, UNNAMED } from '../../table/names.ts';
import { KEY, RESCUED, type StreamName } from './streams.ts';

// Names stay as the customer wrote them. Readers take names that differ only in case for one. Of those, the one in
// lower case, else the first in byte order, keeps its name. The others get the hash of their name in the export.

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

/** By column of a header; undefined for a column that the stream does not show. */
type Names = readonly (string | undefined)[];

/** The names that `discover` gives the columns of a header. */
export function discoveredNames(
  stream: StreamName,
  header: readonly HeaderColumn[],
): ({ readonly name: string; readonly isHashed: boolean } | undefined)[] {
  const plain = plainNames(stream, header);
  return distinctNames(plain, stream, header).map((name, i) =>
    name === undefined ? undefined : { name, isHashed: name !== plain[i] },
  );
}

/**
 * The names in a record. A day may lack some of the columns that differ only in case. So each column has that form of
 * its name which the catalog has, and no two columns have one name.
 */
export function configuredNames(stream: StreamName, header: readonly HeaderColumn[], catalog: ReadonlySet<string>) {
  const plain = plainNames(stream, header);
  const names = distinctNames(plain, stream, header);
  const taken = new Set([...reservedNames(stream), ...names]);
  for (const { name: plainName, i } of byPrecedence(plain)) {
    const name = names[i] ?? plainName;
    taken.delete(name);
    const forms = [plainName, name, nameWithHash(plainName, textToHash(header[i]))];
    const configured = forms.find((form) => catalog.has(form) && !taken.has(form)) ?? name;
    taken.add(configured);
    names[i] = configured;
  }
  return names;
}

/** Names of properties that no column may have. */
const reservedNames = (stream: StreamName): readonly string[] =>
  stream === 'event_items' ? [KEY, RESCUED, ITEM_POSITION] : [KEY, RESCUED];

/** The names before equal ones are made distinct. An item column keeps its prefix where its bare name is taken. */
function plainNames(stream: StreamName, header: readonly HeaderColumn[]): Names {
  const shown = SHOWN[stream];
  const taken = new Set(reservedNames(stream).map(foldName));
  for (const { group, source } of header) if (shown[group] === 'whole') taken.add(foldName(source));
  return header.map(({ group, source }) => {
    if (shown[group] === 'hidden') return undefined;
    if (shown[group] === 'whole') return source === '' ? UNNAMED : source;
    const bareName = source.slice(ITEM_PREFIX.length);
    return taken.has(foldName(bareName)) ? source : bareName;
  });
}

function distinctNames(plain: Names, stream: StreamName, header: readonly HeaderColumn[]): (string | undefined)[] {
  const names = [...plain];
  const taken = new Set(reservedNames(stream).map(foldName));
  for (const { name: plainName, i } of byPrecedence(plain)) {
    let name = plainName;
    while (taken.has(foldName(name))) name = nameWithHash(name, textToHash(header[i]));
    taken.add(foldName(name));
    names[i] = name;
  }
  return names;
}

/** The name of a column that has the name of another one, made distinct by the hash of a text. */
const nameWithHash = (name: string, text: string): string =>
  `${name}_${createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS)}`;

/** Of equal names the second is the first that gets a hash. Only the third needs a text of its own. */
const textToHash = ({ source, occurrence }: HeaderColumn): string =>
  occurrence < 3 ? source : `${source}#${occurrence}`;

/** The names that are shown with their columns, those in lower case first, then by bytes. */
function byPrecedence(names: Names): { readonly name: string; readonly i: number }[] {
  const rank = (name: string) => (name === name.toLowerCase() ? 0 : 1);
  return names
    .flatMap((name, i) => (name === undefined ? [] : [{ name, i }]))
    .sort((a, b) => rank(a.name) - rank(b.name) || compareBytes(a.name, b.name));
}
