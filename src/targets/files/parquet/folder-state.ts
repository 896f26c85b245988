import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import validFolder from '../../../../schemas/files-state.validator';
import type { Day } from '../../../base/days.ts';
import { VERSION } from '../../../base/version.ts';
import type { DescribedColumn } from '../../../engine/conversions.ts';
import { OWN_FOLDER } from '../../../storage/storage.ts';
import { type PlaceState, type RunRecord, type StoredProfiles, tableState } from '../../../table/place-state.ts';
import type { StoredReceipt } from '../../../table/receipts.ts';
import { EVENTS, type Table, USER_PROFILES } from '../../../table/tables.ts';
import type { DayFile } from '../local-files.ts';
import { dayFolder, dayOfFolder, parquetColumns } from '../parquet-file.ts';
import {
  checked,
  fromStored,
  parseJson,
  receiptOf,
  refuseNewer,
  type StoredState,
  storedProfilesOf,
  toStored,
} from '../stored-state.ts';

// The paths of a folder, from its root. They never change.
export const LOCK_FILE = `${OWN_FOLDER}/lock`;
const DATA_FILE = 'data.parquet';
export const PROFILES_FILE = `user_profiles/${DATA_FILE}`;
/** The path of the file of a day, or of the profiles. */
export const filePath = (day: Day, table: Table['name']): string =>
  table === USER_PROFILES.name ? PROFILES_FILE : `${dayFolder(day)}/${DATA_FILE}`;
/** The day whose file has a path; undefined for any other path. */
export function dayOfPath(path: string): Day | undefined {
  const day = dayOfFolder(dirname(path));
  return day !== undefined && path === filePath(day, EVENTS.name) ? day : undefined;
}

const FORMAT_VERSION = 1;

/** A file of a folder: of a day, or of the profiles. */
export interface FolderFile extends DayFile {
  /** Time of its last change on the disk (ms since 1970). With the size, it tells if a file was replaced. */
  readonly modified: number;
  /** Instant (ISO, UTC) at which this program wrote it, as its own metadata have it. */
  readonly writtenAt: string;
  /** Hash of its columns and their types. */
  readonly schema: string;
}

/** All that `_dfinery.json` holds. */
interface StateFile {
  readonly state: PlaceState;
  /** By path. */
  readonly files: ReadonlyMap<string, FolderFile>;
}

/** A hash of columns in their order, with their types. */
export const schemaOf = (columns: readonly DescribedColumn[]): string =>
  createHash('sha256')
    .update(JSON.stringify(columns.map(({ name, type }) => [name, type])))
    .digest('hex')
    .slice(0, 16);

const columnNames = (columns: readonly DescribedColumn[]): ReadonlySet<string> =>
  new Set(columns.map(({ name }) => name));

/** The columns that a file has, and their hash. */
export const columnsInFile = (columns: readonly DescribedColumn[]): Pick<FolderFile, 'schema' | 'columns'> => ({
  schema: schemaOf(columns),
  columns: columnNames(columns),
});

interface StoredFile extends Pick<FolderFile, 'rows' | 'bytes' | 'modified' | 'sha256' | 'schema'> {
  readonly written_at: string;
}

interface StoredFolder extends StoredState {
  readonly last_run?: RunRecord;
  readonly profiles?: StoredProfiles & { readonly file?: StoredFile };
  readonly days: readonly (StoredReceipt & { readonly file?: StoredFile })[];
}

/** The member `file` of a day, or of the profiles. */
const fileMember = (file: FolderFile | undefined): { readonly file?: StoredFile } => {
  if (file === undefined) return {};
  const { rows, bytes, modified, writtenAt: written_at, sha256, schema } = file;
  return { file: { rows, bytes, modified, written_at, sha256, schema } };
};

/** The text of `_dfinery.json`. */
export function serializeState({ state, files }: StateFile): string {
  const { receipts, lastRun, profiles } = state;
  const stored: StoredFolder & { readonly v: number; readonly writer: string } = {
    ...{ v: FORMAT_VERSION, writer: VERSION, ...toStored(state) },
    ...(lastRun !== undefined && { last_run: lastRun }),
    ...(profiles !== undefined && { profiles: { ...profiles, ...fileMember(files.get(PROFILES_FILE)) } }),
    days: [...receipts.values()].map((receipt) => {
      return { ...receipt, ...fileMember(files.get(filePath(receipt.day, EVENTS.name))) };
    }),
  };
  return `${JSON.stringify(stored)}\n`;
}

/** Throws a configuration failure for a text that this program cannot have written. */
export function parseStateFile(text: string, where: string): StateFile {
  const value = parseJson(text, where);
  refuseNewer(value, FORMAT_VERSION, where);
  const stored = checked<StoredFolder>(validFolder, value, where);
  const receipts = stored.days.map(({ file: _file, ...receipt }) => receiptOf(receipt, where));
  const profiles = storedProfilesOf(stored.profiles, where);
  const state = { ...fromStored(stored, receipts, where), profiles, lastRun: stored.last_run };

  const filesOf = (table: Table['name'], stored: readonly Pick<StoredFolder['days'][number], 'day' | 'file'>[]) => {
    const columns = columnNames(parquetColumns(tableState(state, table) ?? state));
    return stored.flatMap(({ day, file }): FolderFile[] => {
      if (file === undefined) return [];
      const { written_at: writtenAt, ...facts } = file;
      return [{ ...facts, writtenAt, table, day, path: filePath(day, table), columns }];
    });
  };
  const ofProfiles = profiles === undefined ? [] : [{ ...stored.profiles, day: profiles.receipt.day }];
  const files = [...filesOf(EVENTS.name, stored.days), ...filesOf(USER_PROFILES.name, ofProfiles)];
  return { state, files: new Map(files.map((file) => [file.path, file])) };
}
