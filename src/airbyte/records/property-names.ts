import { createHash } from 'node:crypto';
import { compareBytes, type HeaderColumn, ITEM_PREFIX } from '../../cells/columns/groups.ts';
import { foldName, UNNAMED } from '../../table/names.ts';
import { isItemGroup } from '../../table/tables.ts';
import { KEY, RESCUED, STREAMS, type StreamName, type StreamRows } from './streams.ts';

// Names stay as the customer wrote them. Readers take names that differ only in case for one. Of those, the one in
// lower case, else the first in byte order, keeps its name. The others get the hash of their name in the export.

const HASH_DIGITS = 6;

/** The name of a column in a record. */
export interface PropertyName {
  name: string;
  /** The name before equal ones were made distinct. */
  readonly plainName: string;
  readonly column: HeaderColumn;
}

/** The names that `discover` gives the columns of a header; undefined for a column that the stream does not show. */
export function discoveredNames(
  stream: StreamName,
  header: readonly HeaderColumn[],
): readonly (PropertyName | undefined)[] {
  const names = plainNames(stream, header);
  const taken = new Set(reservedNames(stream).map(foldName));
  for (const property of byPrecedence(names)) {
    while (taken.has(foldName(property.name))) property.name = nameWithHash(property.name, property.column);
    taken.add(foldName(property.name));
  }
  return names;
}

/**
 * The names in a record. A day may lack some of the columns that differ only in case. So each column has that form of
 * its name which the catalog has, and no two columns have one name.
 */
export function configuredNames(
  stream: StreamName,
  header: readonly HeaderColumn[],
  catalog: ReadonlySet<string>,
): readonly (PropertyName | undefined)[] {
  const names = discoveredNames(stream, header);
  const taken = new Set([...reservedNames(stream), ...names.map((property) => property?.name)]);
  for (const property of byPrecedence(names)) {
    const { name, plainName, column } = property;
    taken.delete(name);
    const forms = [plainName, name, nameWithHash(plainName, column)];
    property.name = forms.find((form) => catalog.has(form) && !taken.has(form)) ?? name;
    taken.add(property.name);
  }
  return names;
}

/** Names of properties that no column may have. */
const reservedNames = (stream: StreamName): readonly string[] => [
  KEY,
  RESCUED,
  ...Object.keys(STREAMS[stream].ownProperties),
];

/** How a stream shows a column: as it is, without the prefix of an item column, or not at all. */
function shownAs({ group }: HeaderColumn, rows: StreamRows): 'whole' | 'bare' | 'hidden' {
  if (rows === 'all') return 'whole';
  if (rows === 'events') return isItemGroup(group) ? 'hidden' : 'whole';
  if (isItemGroup(group)) return 'bare';
  return group === 'unified_id' || group === 'system' ? 'whole' : 'hidden';
}

/** The names before equal ones are made distinct. An item column keeps its prefix where its bare name is taken. */
function plainNames(stream: StreamName, header: readonly HeaderColumn[]): readonly (PropertyName | undefined)[] {
  const { rows } = STREAMS[stream];
  const wholeNames = header.flatMap((column) => (shownAs(column, rows) === 'whole' ? [column.source] : []));
  const taken = new Set([...reservedNames(stream), ...wholeNames].map(foldName));
  return header.map((column) => {
    const shown = shownAs(column, rows);
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

/** The names that are shown, those in lower case first, then by bytes. */
function byPrecedence(names: readonly (PropertyName | undefined)[]): PropertyName[] {
  const rank = ({ plainName }: PropertyName) => (plainName === plainName.toLowerCase() ? 0 : 1);
  return names
    .filter((property) => property !== undefined)
    .sort((a, b) => rank(a) - rank(b) || compareBytes(a.plainName, b.plainName));
}
