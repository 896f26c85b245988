import validStats from '../../../../schemas/delta-log.stats.validator';
import validNote from '../../../../schemas/files-state.note.validator';
import type { Day } from '../../../base/days.ts';
import type { TableState } from '../../../table/place-state.ts';
import { typedColumns } from '../../../table/tables.ts';
import { fileColumns, PARTITION_COLUMN } from '../file-layout.ts';
import type { NewFile, TableFile } from '../place-version.ts';
import { damagedError, parseJson, requireValid } from '../stored-state.ts';
import type { Action, Add } from './protocol/actions.ts';
import { dayOfPath } from './protocol/paths.ts';
import type { Snapshot } from './protocol/snapshot.ts';
import { DELTA_LAYOUT } from './schema.ts';

// What a log says of a file: how it is written, and how it is read again.

/** The tag of a file with a note of its SHA-256, in JSON. */
const NOTE_TAG = 'dfinery';

/** The action by which a new file becomes part of its table. */
export function addAction(file: NewFile, state: TableState, timestamp: number): Action {
  const day = dayOfPath(file.path);
  return {
    add: {
      path: file.path.slice(`${file.table}/`.length),
      partitionValues: day === undefined ? {} : { [PARTITION_COLUMN]: day },
      size: file.bytes,
      modificationTime: timestamp,
      dataChange: true,
      stats: statsOf(file, state),
      tags: { [NOTE_TAG]: JSON.stringify({ sha256: file.sha256 }) },
    },
  };
}

/** The action by which a file leaves its table. */
export const removeAction = (add: Add, timestamp: number): Action => ({
  remove: {
    path: add.path,
    deletionTimestamp: timestamp,
    dataChange: true,
    extendedFileMetadata: true,
    partitionValues: add.partitionValues,
    size: add.size,
    tags: add.tags ?? {},
  },
});

/**
 * The number of rows, and for each column of the file those without a value: `tableFilesOf` reads its columns there. Only
 * system datetimes have a minimum and a maximum. Those of any other column would keep a person's value in the log.
 */
function statsOf({ rows, statistics }: NewFile, { columns, timezone }: TableState): string {
  const datetimeColumns = typedColumns(columns).filter(({ group, type }) => group === 'system' && type === 'datetime');
  const zoneSuffix = timezone === null ? '' : 'Z';
  // JSON leaves out a column without a value.
  const valuesOf = (bound: 'min' | 'max') =>
    Object.fromEntries(
      datetimeColumns.map(({ name }) => [name, statsDatetime(statistics.get(name)?.[bound] ?? '', zoneSuffix)]),
    );
  const nullCount = Object.fromEntries([...statistics].map(([name, column]) => [name, column.nullCount]));
  return JSON.stringify({ numRecords: rows, minValues: valuesOf('min'), maxValues: valuesOf('max'), nullCount });
}

/** A datetime of at most milliseconds, as DuckDB writes it: without zeros at the end of a fraction. */
const DUCKDB_DATETIME = /^(\d{4}-\d{2}-\d{2}) (\d{2}:\d{2}:\d{2})(?:\.(\d{1,3}))?(?:\+00)?$/;

/** A datetime with milliseconds, as readers expect it; undefined for one with microseconds, which would be cut. */
function statsDatetime(text: string, zoneSuffix: string): string | undefined {
  const [, date, time, fraction = ''] = DUCKDB_DATETIME.exec(text) ?? [];
  return date === undefined ? undefined : `${date}T${time}.${fraction.padEnd(3, '0')}${zoneSuffix}`;
}

/** The live files but for missing ones. Throws a configuration failure for one that this program did not write. */
export function tableFilesOf(
  { table, liveFiles }: Snapshot,
  missingPaths: ReadonlySet<string>,
  state: TableState,
  storageAddress: string,
): Map<Day, TableFile> {
  const tableColumns = fileColumns(DELTA_LAYOUT, state);
  // Profiles have no partition, and one receipt.
  const [profilesDay] = state.receipts.keys();
  const files = new Map<Day, TableFile>();
  for (const [path, { partitionValues, tags, stats, size: bytes }] of liveFiles) {
    if (missingPaths.has(path)) continue;
    const subject = `${storageAddress}/${path}`;
    const partitionDay = dayOfPath(path);
    const note = tags?.[NOTE_TAG];
    if (note === undefined || stats === undefined || partitionValues[PARTITION_COLUMN] !== partitionDay) {
      throw damagedError(subject, 'another program wrote it into the table');
    }
    const day: Day | undefined = partitionDay ?? profilesDay;
    if (day === undefined || !state.receipts.has(day)) throw damagedError(subject, 'it has no receipt');
    if (files.has(day)) throw damagedError(subject, `${day} has two files`);
    const { sha256 } = requireValid<{ sha256: string }>(validNote, parseJson(note, subject), subject);
    const { nullCount } = requireValid<{ nullCount: object }>(validStats, parseJson(stats, subject), subject);
    // A file lacks columns of its table: it has those whose nulls are counted.
    const columns = new Map([...tableColumns].filter(([name]) => Object.hasOwn(nullCount, name)));
    files.set(day, { table, day, path, bytes, sha256, columns });
  }
  return files;
}
