import validNote from '../../../../schemas/files-state.note.validator';
import type { Day } from '../../../base/days.ts';
import type { TableState } from '../../../table/place-state.ts';
import { PARTITION_COLUMN, tableColumnsOf } from '../file-layout.ts';
import type { NewFile, TableFile } from '../place-version.ts';
import { damagedError, parseJson, requireValid } from '../stored-state.ts';
import type { Action, Add } from './protocol/actions.ts';
import { dayOfPath } from './protocol/paths.ts';
import type { Snapshot } from './protocol/snapshot.ts';
import { DELTA_LAYOUT } from './schema.ts';

// What a log says of a file: how it is written, and how it is read again.

/** The tag of a file with a note in JSON. */
const NOTE_TAG = 'dfinery';

/** What the log says of a file beside what the protocol has. */
interface FileNote {
  readonly sha256: string;
  /** The names of its columns: it may lack some of its table. */
  readonly columns: readonly string[];
}

/**
 * The action by which a new file becomes part of its table. Its statistics are the number of rows alone: a least or
 * greatest value would keep a phone or a birthday in the log.
 */
export function addAction(file: NewFile, timestamp: number): Action {
  const day = dayOfPath(file.path);
  const note: FileNote = { sha256: file.sha256, columns: [...file.columns.keys()] };
  return {
    add: {
      path: file.path.slice(`${file.tableName}/`.length),
      partitionValues: day === undefined ? {} : { [PARTITION_COLUMN]: day },
      size: file.bytes,
      modificationTime: timestamp,
      dataChange: true,
      stats: JSON.stringify({ numRecords: file.rows }),
      tags: { [NOTE_TAG]: JSON.stringify(note) },
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
    tags: {},
  },
});

/** The live files but for missing ones. Throws a configuration failure for one that this program did not write. */
export function tableFilesIn(
  { tableName, liveFiles }: Snapshot,
  missingPaths: ReadonlySet<string>,
  state: TableState,
  storageAddress: string,
): Map<Day, TableFile> {
  const tableColumns = tableColumnsOf(DELTA_LAYOUT, state);
  // Profiles have no partition, and one receipt.
  const [profilesDay] = state.receipts.keys();
  const files = new Map<Day, TableFile>();
  for (const [path, { partitionValues, tags, size: bytes }] of liveFiles) {
    if (missingPaths.has(path)) continue;
    const subject = `${storageAddress}/${path}`;
    const partitionDay = dayOfPath(path);
    const noteText = tags?.[NOTE_TAG];
    if (noteText === undefined || partitionValues[PARTITION_COLUMN] !== partitionDay) {
      throw damagedError(subject, 'another program wrote it into the table');
    }
    const day: Day | undefined = partitionDay ?? profilesDay;
    if (day === undefined || !state.receipts.has(day)) throw damagedError(subject, 'it has no receipt');
    if (files.has(day)) throw damagedError(subject, `${day} has two files`);
    const note = requireValid<FileNote>(validNote, parseJson(noteText, subject), subject);
    const namesInFile = new Set(note.columns);
    const columns = new Map([...tableColumns].filter(([name]) => namesInFile.has(name)));
    files.set(day, { tableName, day, path, bytes, sha256: note.sha256, columns });
  }
  return files;
}
