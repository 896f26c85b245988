import { createHash } from 'node:crypto';
import { compareUtf8 } from '../../base/text.ts';
import { type HeaderColumn, ITEM_PREFIX, REQUIRED_COLUMNS } from '../../cells/header.ts';
import { foldName, UNNAMED_COLUMN } from '../../table/column-names.ts';
import { isItemGroup } from '../../table/tables.ts';
import { KEY_PROPERTY, RESCUED_PROPERTY, STREAMS, type StreamName, type StreamSchemas } from './streams.ts';

// Names stay as the customer wrote them. Readers take names that differ only in case for one. Of those, the one in
// lower case, else the first in byte order, keeps its name. The others get the hash of their name in the export.
//
//   column of the export      in `events`         in `event_items`
//   member                    member              none
//   Member beside member      Member_7c968f       none
//   a second, a third member  member_e31ab6, member_e31ab6_3
//   df_items_size             df_items_size       size

const HASH_DIGITS = 6;

/** A column of the export that a stream has. */
interface StreamColumn {
  readonly column: HeaderColumn;
  readonly index: number;
  /** The names that it may have in the records, the plain one first. */
  readonly possibleNames: readonly string[];
}

/** The columns of a header that a stream has, as `discover` names them. */
export const discoveredProperties = (stream: StreamName, header: readonly HeaderColumn[]) =>
  nameColumns(stream, header, () => true).flatMap(({ name, index }) => (name === undefined ? [] : { name, index }));

/**
 * The columns of a header that a stream has, as its catalog names them; undefined if it lacks them. A catalog
 * has `member` and `Member_7c968f`. On a day without the column `member`, `Member` still gets the name with the hash.
 */
export const configuredProperties = ({ name: stream, schemas }: StreamSchemas, header: readonly HeaderColumn[]) =>
  nameColumns(stream, header, (name) => schemas.has(name));

/** Gives each column the first of its free names, which no other column has, that is offered. */
function nameColumns(stream: StreamName, header: readonly HeaderColumn[], isOffered: (name: string) => boolean) {
  const { hasColumn, addedProperties } = STREAMS[stream];
  const takenNames = new Set([KEY_PROPERTY, RESCUED_PROPERTY, ...Object.keys(addedProperties)].map(foldName));
  const columns = header
    .map((column, index): StreamColumn => ({ column, index, possibleNames: possibleNames(stream, column) }))
    .filter(({ column }) => hasColumn(column))
    .sort(compareByRightToName);
  const namedColumns = columns.map((streamColumn) => {
    const freeNames = streamColumn.possibleNames.filter((name) => !takenNames.has(foldName(name)));
    const name = freeNames.find(isOffered);
    if (name !== undefined) takenNames.add(foldName(name));
    return { ...streamColumn, freeNames, name };
  });
  return namedColumns.sort((a, b) => a.index - b.index);
}

/** The order in which columns get names, whatever that of the header. */
function compareByRightToName(a: StreamColumn, b: StreamColumn): number {
  const caseRank = ({ possibleNames: [name] }: StreamColumn) => (name === name.toLowerCase() ? 0 : 1);
  return caseRank(a) - caseRank(b) || compareUtf8(a.column.source, b.column.source);
}

/**
 * The names that a column may have. In a stream of items an item column loses its prefix, unless every export has a
 * column of the short name. The last names have the hash of the column's name in the export.
 */
function possibleNames(stream: StreamName, { source, occurrence, group }: HeaderColumn): readonly string[] {
  const fullName = source || UNNAMED_COLUMN;
  const shortName = source.slice(ITEM_PREFIX.length);
  const losesPrefix = STREAMS[stream].selection === 'rows_with_item' && isItemGroup(group);
  const isShortened = losesPrefix && !REQUIRED_COLUMNS.includes(foldName(shortName));
  const hash = createHash('sha256').update(source).digest('hex').slice(0, HASH_DIGITS);
  const withHash = `${fullName}_${hash}`;
  return [...(isShortened ? [shortName] : []), fullName, withHash, `${withHash}_${occurrence}`];
}
