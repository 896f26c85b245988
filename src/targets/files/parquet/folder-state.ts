import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import validFolder from '../../../../schemas/files-state.validator';
import type { Day } from '../../../base/days.ts';
import { VERSION } from '../../../base/version.ts';
import type { DescribedColumn } from '../../../engine/conversions.ts';
import { OWN_FOLDER } from '../../../storage/storage.ts';
import { type PlaceState, profilesAsTable, type RunRecord, type StoredProfiles } from '../../../table/place-state.ts';
import type { StoredReceipt } from '../../../table/receipts.ts';
import type { DayFile } from '../format.ts';
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
export const dayPath = (day: Day): string => `${dayFolder(day)}/${DATA_FILE}`;
/** True for the path that some day's file has. */
export function isDayPath(path: string): boolean {
  const day = dayOfFolder(dirname(path));
  return day !== undefined && path === dayPath(day);
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
export interface StateFile {
  readonly state: PlaceState;
  readonly files: ReadonlyMap<Day, FolderFile>;
  readonly profiles?: FolderFile | undefined;
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

const fileOf = (
  { written_at: writtenAt, ...file }: StoredFile,
  day: Day,
  path: string,
  columns: ReadonlySet<string>,
): FolderFile => ({ ...file, writtenAt, day, path, columns });

/** The text of `_dfinery.json`. */
export function serializeState({ state, files, profiles: profilesFile }: StateFile): string {
  const { receipts, lastRun, profiles } = state;
  const stored: StoredFolder & { readonly v: number; readonly writer: string } = {
    ...{ v: FORMAT_VERSION, writer: VERSION, ...toStored(state) },
    ...(lastRun !== undefined && { last_run: lastRun }),
    ...(profiles !== undefined && { profiles: { ...profiles, ...fileMember(profilesFile) } }),
    days: [...receipts.values()].map((receipt) => ({ ...receipt, ...fileMember(files.get(receipt.day)) })),
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

  const columns = columnNames(parquetColumns(state));
  const files = stored.days.flatMap(({ day, file }): [Day, FolderFile][] =>
    file === undefined ? [] : [[day, fileOf(file, day, dayPath(day), columns)]],
  );
  const table = profilesAsTable(state);
  const { file } = stored.profiles ?? {};
  const profilesFile =
    file && profiles && table && fileOf(file, profiles.receipt.day, PROFILES_FILE, columnNames(parquetColumns(table)));
  return { state, files: new Map(files), profiles: profilesFile };
}
