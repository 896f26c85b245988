import { createHash } from 'node:crypto';
import { compareUtf8 } from '../../base/text.ts';
import { type HeaderColumn, ITEM_PREFIX } from '../../cells/header.ts';
import { foldName, UNNAMED_COLUMN } from '../../table/column-names.ts';
import { isItemGroup } from '../../table/tables.ts';
import { KEY_PROPERTY, RESCUED_PROPERTY, STREAMS, type StreamName, type StreamSchemas } from './streams.ts';

// Names stay as the customer wrote them. Readers take names that differ only in case for one. Of those, the one in
// lower case, else the first in byte order, keeps its name. The others get the hash of their name in the export.

const HASH_DIGITS = 6;

/** A column of the export that a stream has. */
interface StreamColumn {
  /** The name that it has unless another column has the same one. */
  readonly plainName: string;
  readonly column: HeaderColumn;
  readonly index: number;
}

/** A column with the name that it has in the records. */
interface Property<Name = string> extends StreamColumn {
  readonly name: Name;
}

/** The columns of a header that a stream has, as `discover` names them. */
export const discoveredProperties = (stream: StreamName, header: readonly HeaderColumn[]): readonly Property[] =>
  properties(stream, header, () => true, foldName).flatMap(({ name, ...streamColumn }) =>
    name === undefined ? [] : [{ ...streamColumn, name }],
  );

/**
 * The columns of a header that a stream has, as its catalog names them; undefined if it lacks them. A catalog
 * has `member` and `Member_7c968f`. On a day without the column `member`, `Member` still gets the name with the hash.
 */
export const configuredProperties = ({ name: stream, schemas }: StreamSchemas, header: readonly HeaderColumn[]) =>
  properties(
    stream,
    header,
    (name) => schemas.has(name),
    (name) => name,
  );

/** Gives each column the first of its names that is offered and free. Names are equal if their `keyOf` is. */
function properties(
  stream: StreamName,
  header: readonly HeaderColumn[],
  isOffered: (name: string) => boolean,
  keyOf: (name: string) => string,
): readonly Property<string | undefined>[] {
  const takenKeys = new Set(reservedNames(stream).map(keyOf));
  const columns = streamColumns(stream, header).map((streamColumn) => {
    const name = possibleNames(streamColumn).find((name) => isOffered(name) && !takenKeys.has(keyOf(name)));
    if (name !== undefined) takenKeys.add(keyOf(name));
    return { ...streamColumn, name };
  });
  return columns.sort((a, b) => a.index - b.index);
}

/** Names of properties that no column may have. */
function reservedNames(stream: StreamName): readonly string[] {
  return [KEY_PROPERTY, RESCUED_PROPERTY, ...Object.keys(STREAMS[stream].addedProperties)];
}

/** The columns of a header that a stream has, in the order in which they get names, whatever that of the header. */
function streamColumns(stream: StreamName, header: readonly HeaderColumn[]): readonly StreamColumn[] {
  const { selection, hasColumn } = STREAMS[stream];
  const columns = header
    .map((column, index) => ({ plainName: column.source || UNNAMED_COLUMN, column, index }))
    .filter(({ column }) => hasColumn(column));
  const caseRank = ({ plainName }: StreamColumn) => (plainName === plainName.toLowerCase() ? 0 : 1);
  const namedColumns = selection === 'rows_with_item' ? withShortNames(stream, columns) : columns;
  return namedColumns.sort((a, b) => caseRank(a) - caseRank(b) || compareUtf8(a.column.source, b.column.source));
}

/** The columns of a stream of items. An item column loses its prefix, unless its short name is taken. */
function withShortNames(stream: StreamName, columns: readonly StreamColumn[]): StreamColumn[] {
  const otherNames = columns.flatMap(({ column }) => (isItemGroup(column.group) ? [] : [column.source]));
  const takenNames = new Set([...reservedNames(stream), ...otherNames].map(foldName));
  return columns.map((streamColumn) => {
    const shortName = streamColumn.plainName.slice(ITEM_PREFIX.length);
    const isShortened = isItemGroup(streamColumn.column.group) && !takenNames.has(foldName(shortName));
    return isShortened ? { ...streamColumn, plainName: shortName } : streamColumn;
  });
}

/**
 * The names that a column may have. The others are made distinct by the hash of its name in the export. Of equal
 * columns, the second is the first that needs a hash. Only the third needs a text of its own.
 */
function possibleNames({ plainName, column: { source, occurrence } }: StreamColumn): readonly string[] {
  const distinctSource = occurrence < 3 ? source : `${source}#${occurrence}`;
  const hash = createHash('sha256').update(distinctSource).digest('hex').slice(0, HASH_DIGITS);
  return [plainName, `${plainName}_${hash}`, `${plainName}_${hash}_${hash}`];
}
