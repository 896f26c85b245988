const VERSION_DIGITS = 20;
const ENTRY = /^_delta_log\/(\d{20})\.json$/;
const CHECKPOINT = /^_delta_log\/(\d{20})\.checkpoint\.parquet$/;
/** An absolute path or an address, which may lead anywhere. */
const ELSEWHERE = /^([A-Za-z][A-Za-z0-9+.-]*:|\/|\\)/;

export const LOG_FOLDER = '_delta_log';
export const LAST_CHECKPOINT = `${LOG_FOLDER}/_last_checkpoint`;

const digits = (version: number) => String(version).padStart(VERSION_DIGITS, '0');
export const entryPath = (version: number): string => `${LOG_FOLDER}/${digits(version)}.json`;
export const checkpointPath = (version: number): string => `${LOG_FOLDER}/${digits(version)}.checkpoint.parquet`;
/** Comes before every file of the log that belongs to this version or a later one. */
export const beforeVersion = (version: number): string => `${LOG_FOLDER}/${digits(version)}`;

/** What a file of the log is; none for any other. */
export function logFileOf(
  path: string,
): { readonly kind: 'entry' | 'checkpoint'; readonly version: number } | undefined {
  const entry = ENTRY.exec(path);
  if (entry !== null) return { kind: 'entry', version: Number(entry[1]) };
  const checkpoint = CHECKPOINT.exec(path);
  return checkpoint === null ? undefined : { kind: 'checkpoint', version: Number(checkpoint[1]) };
}

/** The file, from the table's folder, that an action's path means; none for one that lies outside. */
export function filePathOf(path: string): string | undefined {
  const decoded = decode(path);
  if (decoded === undefined || ELSEWHERE.test(decoded) || decoded.includes('\0')) return undefined;
  const segments = decoded.split('/');
  return segments.some((segment) => segment === '' || segment === '.' || segment === '..') ? undefined : decoded;
}

function decode(path: string): string | undefined {
  try {
    return ELSEWHERE.test(path) ? undefined : decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
