import { createHash } from 'node:crypto';
import { compareBytes, type HeaderColumn, ITEM_PREFIX } from '../../cells/csv/header.ts';
import { foldName, UNNAMED } from '../../table/names.ts';
import { isItemGroup } from '../../table/tables.ts';
import { KEY, RESCUED, type RowSelection, STREAMS, type StreamName } from './streams.ts';

// Names stay as the customer wrote them. Readers take names that differ only in case for one. Of those, the one in
// lower case, else the first in byte order, keeps its name. The others get the hash of their name in the export.

const HASH_DIGITS = 6;

/** The name of a column in a record. */
export interface PropertyName {
  readonly name: string;
  /** The name before equal ones were made distinct. */
  readonly plainName: string;
  readonly column: HeaderColumn;
}

/** The names that `discover` gives the columns of a header; undefined for a column that the stream does not show. */
export function discoveredNames(
  stream: StreamName,
  header: readonly HeaderColumn[],
): readonly (PropertyName | undefined)[] {
  const taken = new Set(reservedNames(stream).map(foldName));
  return withNames(plainNames(stream, header), ({ plainName, column }) => {
    let name = plainName;
    while (taken.has(foldName(name))) name = nameWithHash(name, column);
    taken.add(foldName(name));
    return name;
  });
}

/**
 * The names in a record. A day may lack some of the columns that differ only in case. So each column has that form of
 * its name which the catalog has, and no two columns have one name.
 */
export function configuredNames(
  stream: StreamName,
  header: readonly HeaderColumn[],
  configuredProperties: ReadonlySet<string>,
): readonly (PropertyName | undefined)[] {
  const properties = discoveredNames(stream, header);
  const taken = new Set([...reservedNames(stream), ...properties.map((property) => property?.name)]);
  return withNames(properties, ({ name, plainName, column }) => {
    taken.delete(name);
    const forms = [plainName, name, nameWithHash(plainName, column)];
    const configuredName = forms.find((form) => configuredProperties.has(form) && !taken.has(form)) ?? name;
    taken.add(configuredName);
    return configuredName;
  });
}

/** Names of properties that no column may have. */
const reservedNames = (stream: StreamName): readonly string[] => [
  KEY,
  RESCUED,
  ...Object.keys(STREAMS[stream].ownProperties),
];

/** How a stream shows a column: as it is, without the prefix of an item column, or not at all. */
function shownAs({ group }: HeaderColumn, selection: RowSelection): 'whole' | 'bare' | 'hidden' {
  if (selection === 'every_row') return 'whole';
  if (selection === 'row_per_event') return isItemGroup(group) ? 'hidden' : 'whole';
  if (isItemGroup(group)) return 'bare';
  return group === 'unified_id' || group === 'system' ? 'whole' : 'hidden';
}

/** The names before equal ones are made distinct. An item column keeps its prefix where its bare name is taken. */
function plainNames(stream: StreamName, header: readonly HeaderColumn[]): readonly (PropertyName | undefined)[] {
  const { selection } = STREAMS[stream];
  const wholeNames = header.flatMap((column) => (shownAs(column, selection) === 'whole' ? [column.source] : []));
  const taken = new Set([...reservedNames(stream), ...wholeNames].map(foldName));
  return header.map((column) => {
    const shown = shownAs(column, selection);
    if (shown === 'hidden') return undefined;
    const bareName = column.source.slice(ITEM_PREFIX.length);
    const plainName = shown === 'bare' && !taken.has(foldName(bareName)) ? bareName : column.source || UNNAMED;
    return { name: plainName, plainName, column };
  });
}

/**
 * A name that another column has, made distinct by the hash of the column's name in the export. Of equal columns, the
 * second is the first that gets a hash, and only the third needs a text of its own.
 */
function nameWithHash(name: string, { source, occurrence }: HeaderColumn): string {
  const text = occurrence < 3 ? source : `${source}#${occurrence}`;
  return `${name}_${createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS)}`;
}

/** Chooses the names anew, one after the other: those in lower case first, then by bytes. */
function withNames(
  properties: readonly (PropertyName | undefined)[],
  choose: (property: PropertyName) => string,
): readonly (PropertyName | undefined)[] {
  const rank = ({ plainName }: PropertyName) => (plainName === plainName.toLowerCase() ? 0 : 1);
  const byPrecedence = properties
    .filter((property) => property !== undefined)
    .sort((a, b) => rank(a) - rank(b) || compareBytes(a.plainName, b.plainName));
  const named = new Map(byPrecedence.map((property) => [property, { ...property, name: choose(property) }]));
  return properties.map((property) => property && named.get(property));
}
