import { createHash } from 'node:crypto';
import { compareUtf8 } from '../../base/text.ts';
import { type HeaderColumn, ITEM_PREFIX } from '../../cells/csv/header.ts';
import { foldName, UNNAMED } from '../../table/column-names.ts';
import { isItemGroup } from '../../table/tables.ts';
import { KEY_PROPERTY, RESCUED_PROPERTY, STREAMS, type StreamName } from './streams.ts';

// Names stay as the customer wrote them. Readers take names that differ only in case for one. Of those, the one in
// lower case, else the first in byte order, keeps its name. The others get the hash of their name in the export.

const HASH_DIGITS = 6;

/** A column that a stream shows, under the name that it has in the records. */
export interface Property {
  readonly name: string;
  /** The name before equal ones were made distinct. */
  readonly plainName: string;
  readonly column: HeaderColumn;
  /** Index of the column in its header. */
  readonly index: number;
}

/** The columns of a header that a stream shows, as `discover` names them. */
export function discoveredProperties(stream: StreamName, header: readonly HeaderColumn[]): readonly Property[] {
  const takenNames = new Set(reservedNames(stream).map(foldName));
  return chooseNames(shownColumns(stream, header), ({ plainName, column }) => {
    let name = plainName;
    while (takenNames.has(foldName(name))) name = nameWithHash(name, column);
    takenNames.add(foldName(name));
    return name;
  });
}

/**
 * The columns of a header that a stream shows, as its catalog names them. A day may lack some of the columns that
 * differ only in case. So each column gets that of its possible names which the catalog has. No two get one name. For
 * example a catalog has `member` and `Member_7c968f`. On a day without the column `member`, `Member` still gets the
 * name with the hash.
 */
export function configuredProperties(
  stream: StreamName,
  header: readonly HeaderColumn[],
  isConfigured: (name: string) => boolean,
): readonly Property[] {
  const properties = discoveredProperties(stream, header);
  const takenNames = new Set([...reservedNames(stream), ...properties.map(({ name }) => name)]);
  return chooseNames(properties, ({ name, plainName, column }) => {
    takenNames.delete(name);
    const candidates = [plainName, name, nameWithHash(plainName, column)];
    const configuredName = candidates.find((text) => isConfigured(text) && !takenNames.has(text)) ?? name;
    takenNames.add(configuredName);
    return configuredName;
  });
}

/** Names of properties that no column may have. */
const reservedNames = (stream: StreamName): readonly string[] => [
  KEY_PROPERTY,
  RESCUED_PROPERTY,
  ...Object.keys(STREAMS[stream].ownProperties),
];

/** Under plain names. An item column loses its prefix in a stream of items, unless its short name is taken. */
function shownColumns(stream: StreamName, header: readonly HeaderColumn[]): readonly Property[] {
  const { selection } = STREAMS[stream];
  const isShown = ({ group }: HeaderColumn): boolean => {
    if (selection === 'every_row') return true;
    if (selection === 'row_per_event') return !isItemGroup(group);
    return isItemGroup(group) || group === 'unified_id' || group === 'system';
  };
  const isOfItem = ({ group }: HeaderColumn) => selection === 'rows_with_item' && isItemGroup(group);
  const otherNames = header.flatMap((column) => (isShown(column) && !isOfItem(column) ? [column.source] : []));
  const takenNames = new Set([...reservedNames(stream), ...otherNames].map(foldName));
  return header.flatMap((column, index) => {
    if (!isShown(column)) return [];
    const shortName = column.source.slice(ITEM_PREFIX.length);
    const name = isOfItem(column) && !takenNames.has(foldName(shortName)) ? shortName : column.source || UNNAMED;
    return [{ name, plainName: name, column, index }];
  });
}

/**
 * A name that another column has, made distinct by the hash of the column's name in the export. Of equal columns, the
 * second is the first that gets a hash. Only the third needs a text of its own.
 */
function nameWithHash(name: string, { source, occurrence }: HeaderColumn): string {
  const text = occurrence < 3 ? source : `${source}#${occurrence}`;
  return `${name}_${createHash('sha256').update(text).digest('hex').slice(0, HASH_DIGITS)}`;
}

/** Chooses the names anew, one after the other: those in lower case first, then by bytes. */
function chooseNames(properties: readonly Property[], choose: (property: Property) => string): readonly Property[] {
  const rank = ({ plainName }: Property) => (plainName === plainName.toLowerCase() ? 0 : 1);
  const byPrecedence = [...properties].sort((a, b) => rank(a) - rank(b) || compareUtf8(a.plainName, b.plainName));
  const names = new Map(byPrecedence.map((property) => [property.index, choose(property)]));
  return properties.map((property) => ({ ...property, name: names.get(property.index) ?? property.name }));
}
