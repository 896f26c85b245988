import type { ExportState } from '../../../extract/export-state.ts';
import type { PlaceState, TableState } from '../../../table/place-state.ts';
import { type Receipts, type StoredReceipt, withReceipts } from '../../../table/receipts.ts';
import { EVENTS, type TableName, USER_PROFILES } from '../../../table/tables.ts';
import { type FileColumns, fileColumns, hasCurrentColumns } from '../file-layout.ts';
import { newFilesIn, type PlaceChange } from '../place-version.ts';
import { FOLDER_LAYOUT, type FolderVersion, type ListedFile, storedProfilesOf } from './folder-state.ts';

// A commit stores an interim state before its first file, and the state after it behind the last. If it is killed
// between, its files are known by their own receipts: the interim state does not have these.

/**
 * The interim state of a commit: as after it, but for what a kill would make untrue.
 *
 *   receipt of a new file            as before: `readFolder` adopts the new one with the file
 *   receipt of a day without a file  as after: the day would else count as removed by a user
 */
export function interimState(versionBefore: FolderVersion, { state: after, fileChanges }: PlaceChange): PlaceState {
  const { events: eventsBefore } = versionBefore.state;
  const receiptsOf = (table: TableName, tableBefore: TableState | undefined, tableAfter: TableState): Receipts => {
    const newFiles = newFilesIn(fileChanges).filter((file) => file.table === table);
    if (newFiles.length === 0) return tableAfter.receipts;
    const newDays = new Set(newFiles.map(({ day }) => day));
    const otherReceipts = [...tableAfter.receipts.values()].filter(({ day }) => !newDays.has(day));
    return withReceipts(tableBefore?.receipts ?? new Map(), otherReceipts);
  };
  const { events, user_profiles: profiles } = after;
  return {
    ...after,
    events: {
      ...events,
      receipts: receiptsOf(EVENTS.name, eventsBefore, events),
      exportState: events.exportState && interimCursor(eventsBefore.exportState, events.exportState),
    },
    user_profiles: profiles && {
      ...profiles,
      receipts: receiptsOf(USER_PROFILES.name, storedProfilesOf(versionBefore), profiles),
    },
  };
}

/**
 * The cursor and its companions in an interim state: as before, at first at the start, so that the next run loads the
 * days that have no file yet. By filters and hashed columns people are found in the new files: these are as after.
 */
function interimCursor(before: ExportState | undefined, after: ExportState): ExportState {
  const { start_date, filters, hashed } = after;
  const cursor = before ?? { ...after, ...(start_date && { from_date: start_date }) };
  return { ...cursor, ...(filters && { filters }), ...(hashed && { hashed }) };
}

/** What a file says of itself. */
export interface FileMetadata {
  readonly receipt: StoredReceipt;
  readonly columns: FileColumns;
}

/** True if a killed run wrote a file: later than the stored receipt, or since the file lacked columns of its table. */
export function isOfKilledRun(
  { receipt, columns }: FileMetadata,
  listedFile: ListedFile | undefined,
  storedReceipt: StoredReceipt | undefined,
  tableState: TableState,
): boolean {
  // The interim state has the columns of its files already.
  if (!hasCurrentColumns(FOLDER_LAYOUT, columns, fileColumns(FOLDER_LAYOUT, tableState))) return false;
  const changedAt = storedReceipt?.changed_at ?? '';
  const hadOtherColumns = listedFile !== undefined && listedFile.columns === undefined;
  return receipt.changed_at > changedAt || (receipt.changed_at === changedAt && hadOtherColumns);
}
