import { createHash } from 'node:crypto';
import validFolder from '../../../../schemas/files-state.validator';
import type { Day } from '../../../base/days.ts';
import { isObject } from '../../../base/json.ts';
import { VERSION } from '../../../base/version.ts';
import type { DescribedColumn } from '../../../engine/conversions.ts';
import { parseState } from '../../../extract/export-state.ts';
import type { RunRecord, StoredProfiles, TableState } from '../../../table/place-state.ts';
import { receiptsOf, type StoredReceipt } from '../../../table/receipts.ts';
import type { DayFile } from '../format.ts';
import { columnsOfFiles, dayFolder } from '../rows.ts';
import { changesOf, checked, columnsOf, parseJson, profilesOf, receiptOf, refuseNewer } from '../stored.ts';

/** The path of the file of a day, which never changes. */
export const filePath = (day: Day): string => `${dayFolder(day)}/data.parquet`;

/** The file of a day in a folder. */
export interface FolderFile extends DayFile {
  /** Time of its last change on the disk (ms since 1970): with the size, it tells a file that was replaced. */
  readonly modified: number;
  /** Instant (ISO, UTC) at which this program wrote it, as its own metadata have it. */
  readonly writtenAt: string;
  /** Hash of its columns and their types. */
  readonly schema: string;
}

/** All that `_dfinery.json` holds. */
export interface FolderState {
  readonly state: TableState;
  readonly files: ReadonlyMap<Day, FolderFile>;
  readonly profiles?: ProfilesFile | undefined;
}

/** The file of user profiles, which carries what the place holds of them. */
export type ProfilesFile = DayFile & Pick<FolderFile, 'modified'>;
export const PROFILES_PATH = 'user_profiles/data.parquet';

/** The hash by which files with the same columns, in the same order and types, are known. */
export const schemaOf = (columns: readonly DescribedColumn[]): string =>
  createHash('sha256')
    .update(JSON.stringify(columns.map(({ name, type }) => [name, type])))
    .digest('hex')
    .slice(0, 16);

interface StoredFile extends Pick<FolderFile, 'rows' | 'bytes' | 'modified' | 'sha256' | 'schema'> {
  readonly written_at: string;
}

interface StoredFolder {
  readonly timezone: string | null;
  readonly columns: unknown;
  readonly cursor: unknown;
  readonly changes: unknown;
  readonly last_run?: RunRecord;
  readonly suppression_length?: number;
  readonly profiles?: unknown;
  readonly days: readonly (StoredReceipt & { readonly file?: StoredFile })[];
}

export function folderText({ state, files, profiles: file }: FolderState): string {
  const { timezone, columns, receipts, exportState, changes, lastRun, suppressionLength, profiles } = state;
  const days = [...receipts.values()].map((receipt) => {
    const file = files.get(receipt.day);
    if (file === undefined) return receipt;
    const { rows, bytes, modified, writtenAt: written_at, sha256, schema } = file;
    return { ...receipt, file: { rows, bytes, modified, written_at, sha256, schema } };
  });
  const stored: StoredFolder & { readonly v: 1; readonly writer: string } = {
    ...{ v: 1, writer: VERSION, timezone, columns, cursor: exportState ?? null, changes },
    ...(lastRun !== undefined && { last_run: lastRun }),
    ...(suppressionLength !== undefined && { suppression_length: suppressionLength }),
    ...(profiles !== undefined && { profiles: { ...profiles, ...(file !== undefined && { file: factsIn(file) }) } }),
    days,
  };
  return `${JSON.stringify(stored)}\n`;
}

const factsIn = ({ rows, bytes, modified, sha256 }: ProfilesFile) => ({ rows, bytes, modified, sha256 });

/** The file of profiles, of what is stored of it; undefined if they have none. */
function profilesFileOf(value: unknown, profiles: StoredProfiles | undefined, timezone: string | null) {
  if (profiles === undefined || !isObject(value) || !isObject(value.file)) return undefined;
  const { rows, bytes, modified, sha256 } = value.file as ReturnType<typeof factsIn>;
  return profilesFile(profiles, timezone, { rows, bytes, modified, sha256 });
}

export const profilesFile = (
  { columns, receipt: { day } }: StoredProfiles,
  timezone: string | null,
  facts: ReturnType<typeof factsIn>,
): ProfilesFile => ({
  ...facts,
  day,
  path: PROFILES_PATH,
  columns: new Set(columnsOfFiles({ columns, timezone }).map(({ name }) => name)),
});

/** Throws a configuration failure for a text that this program cannot have written. */
export function folderFrom(text: string, where: string): FolderState {
  const value = parseJson(text, where);
  refuseNewer(value, 1, where);
  const stored = checked<StoredFolder>(validFolder, value, where);
  const { timezone, cursor, last_run: lastRun, suppression_length: suppressionLength } = stored;
  const columns = columnsOf(stored.columns, where);
  const names = new Set(columnsOfFiles({ columns, timezone }).map(({ name }) => name));
  const receipts = stored.days.map(({ file: _file, ...receipt }) => receiptOf(receipt, where));
  const files = stored.days.flatMap(({ day, file }): [Day, FolderFile][] => {
    if (file === undefined) return [];
    const { written_at: writtenAt, ...facts } = file;
    return [[day, { ...facts, writtenAt, day, path: filePath(day), columns: names }]];
  });
  const profiles = profilesOf(stored.profiles, where);
  const state: TableState = {
    timezone,
    columns,
    receipts: receiptsOf(receipts),
    exportState: cursor == null ? undefined : parseState(cursor),
    changes: changesOf(stored.changes, where),
    ...(lastRun !== undefined && { lastRun }),
    ...(suppressionLength !== undefined && { suppressionLength }),
    ...(profiles !== undefined && { profiles }),
  };
  return { state, files: new Map(files), profiles: profilesFileOf(stored.profiles, profiles, timezone) };
}
