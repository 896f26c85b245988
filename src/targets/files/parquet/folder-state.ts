import { createHash } from 'node:crypto';
import { dirname } from 'node:path';
import validFolder from '../../../../schemas/files-state.validator';
import type { Day } from '../../../base/days.ts';
import { VERSION } from '../../../base/version.ts';
import { OWN_FOLDER } from '../../../storage/storage.ts';
import {
  type PlaceState,
  type RunRecord,
  type TableJson,
  type TableState,
  tableFromJson,
  tableToJson,
} from '../../../table/place-state.ts';
import type { StoredReceipt } from '../../../table/receipts.ts';
import { EVENTS, type Table, USER_PROFILES } from '../../../table/tables.ts';
import { dayFolder, dayOfFolder } from '../parquet-file.ts';
import type { ColumnTypes, LiveFile } from '../place-version.ts';
import { checked, parseJson, refuseNewer } from '../stored-state.ts';

// The paths of a folder, from its root. They never change.
/** What the folder holds, beside its files. */
export const STATE_FILE = '_dfinery.json';
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
export interface FolderFile extends LiveFile {
  /** Time of its last change on the disk (ms since 1970). With the size, it tells if a file was replaced. */
  readonly modified: number;
  /** Instant (ISO, UTC) at which this program wrote it, as its own metadata have it. */
  readonly writtenAt: string;
  /** Hash of its columns and their types. */
  readonly schema: string;
}

/** What the state keeps of a file. */
export type RecordedFile = Omit<FolderFile, 'columns'>;

/** All that `_dfinery.json` holds. */
interface StateFile {
  readonly state: PlaceState;
  /** By path. */
  readonly files: ReadonlyMap<string, RecordedFile>;
}

/** A hash of columns in their order, with their types. */
export const schemaOf = (columns: ColumnTypes): string =>
  createHash('sha256')
    .update(JSON.stringify([...columns]))
    .digest('hex')
    .slice(0, 16);

interface FileJson extends Pick<FolderFile, 'rows' | 'bytes' | 'modified' | 'sha256' | 'schema'> {
  readonly written_at: string;
}

interface TableOfFolder extends Omit<TableJson, 'days'> {
  readonly days: readonly (StoredReceipt & { readonly file?: FileJson })[];
}

interface FolderJson {
  readonly v: number;
  readonly writer: string;
  readonly suppression_length?: number;
  readonly last_run?: RunRecord;
  readonly events: TableOfFolder;
  readonly user_profiles?: TableOfFolder;
}

/** The member `file` of a day, or of the profiles. */
const fileMember = (file: RecordedFile | undefined): { readonly file?: FileJson } => {
  if (file === undefined) return {};
  const { rows, bytes, modified, writtenAt: written_at, sha256, schema } = file;
  return { file: { rows, bytes, modified, written_at, sha256, schema } };
};

/** The text of `_dfinery.json`. */
export function serializeState({ state, files }: StateFile): string {
  const { events, user_profiles, lastRun, suppressionLength } = state;
  const tableOf = (table: TableState, name: Table['name']): TableOfFolder => {
    const fileOf = ({ day }: StoredReceipt) => fileMember(files.get(filePath(day, name)));
    const { days, ...json } = tableToJson(table);
    return { ...json, days: days.map((receipt) => ({ ...receipt, ...fileOf(receipt) })) };
  };
  const stored: FolderJson = {
    v: FORMAT_VERSION,
    writer: VERSION,
    ...(suppressionLength !== undefined && { suppression_length: suppressionLength }),
    ...(lastRun !== undefined && { last_run: lastRun }),
    events: tableOf(events, EVENTS.name),
    ...(user_profiles !== undefined && { user_profiles: tableOf(user_profiles, USER_PROFILES.name) }),
  };
  return `${JSON.stringify(stored)}\n`;
}

/** Throws a configuration failure for a text that this program cannot have written. */
export function parseStateFile(text: string, where: string): StateFile {
  const value = parseJson(text, where);
  refuseNewer(value, FORMAT_VERSION, where);
  const stored = checked<FolderJson>(validFolder, value, where);
  const files = new Map<string, RecordedFile>();
  const tableFrom = ({ days, ...json }: TableOfFolder, table: Table['name']) => {
    const receipts = days.map(({ file, ...receipt }) => {
      if (file === undefined) return receipt;
      const { written_at: writtenAt, ...recorded } = file;
      const path = filePath(receipt.day, table);
      files.set(path, { ...recorded, writtenAt, table, day: receipt.day, path });
      return receipt;
    });
    return tableFromJson({ ...json, days: receipts });
  };
  const state: PlaceState = {
    events: tableFrom(stored.events, EVENTS.name),
    user_profiles: stored.user_profiles && tableFrom(stored.user_profiles, USER_PROFILES.name),
    lastRun: stored.last_run,
    suppressionLength: stored.suppression_length,
  };
  return { state, files };
}
