import { NO_DATE } from '../files/parquet-file.ts';

export const PARTITION = 'event_date';
const OWN_FILE = /^event_date=(\d{4,}-\d{2}-\d{2}|__HIVE_DEFAULT_PARTITION__)\/part-[0-9a-f-]{36}\.parquet$/;

/** The path of a new data file, from its table's folder. It needs no encoding. */
export function newFilePath(date: string | null, id: string): string {
  return `${PARTITION}=${date ?? NO_DATE}/part-${id}.parquet`;
}

/** The id of a data file: that in its name, or the path of one that somebody else named. */
export const idOf = (path: string): string => /\/part-([0-9a-f-]{36})\.parquet$/.exec(path)?.[1] ?? path;

/** True for a path that only a data file of this program has. */
export const isOwnFile = (path: string): boolean => OWN_FILE.test(path);

const DRAFT = /(^|\/)\.[^/]+\.tmp$/;

/** True for a file that has no lasting name yet: its writer is at work, or dead. */
export const isDraft = (path: string): boolean => DRAFT.test(path);

/** Characters that readers refuse in a column's name. */
const REFUSED = /[ ,;{}()\n\t=]/g;

/** A column's name as every reader of Delta takes it, before it is told apart from others (S43). */
export const readableName = (source: string): string => source.replaceAll(REFUSED, '_');
