import { configError, defectText, messageOf, systemError, transientError, UserError } from '../../base/errors.ts';
import { COMMITTED_IS_KEPT, diskError } from '../../fs/disk-failure.ts';

// DuckDB's messages, by what each says.

const FILE_IN_USE = /Could not set lock on file|File is already open in|being used by another process/;
const DISK_FULL =
  /No space left|not enough space|disk (is )?full|File too large|quota exceeded|max_temp_directory_size/i;
/** After `fsync failed!` every statement of the instance fails, with this message in its text. */
const DISK_FAILED = /Input\/output error|Stale file handle|fsync failed!/;
const OUT_OF_MEMORY = /^Out of Memory|(could not|failed to) (allocate|pin)/;
const DATABASE_TOO_NEW = /database file with version number|newer version of DuckDB/;
const DATABASE_UNREADABLE = /not a valid DuckDB database file|storage version|checksum/i;
const BLOCK_UNREADABLE = /checksum|Corrupt|Serialization Error|^IO Error|INTERNAL Error/i;
const PARQUET_GONE = /No files found that match|Cannot open file ".*\.parquet": No such file/;
const PARQUET_DAMAGED = [
  /^Invalid Input Error: (Failed to read file ".*\.parquet"|Invalid string encoding found in Parquet file)/,
  /^Invalid Input Error: (.*too small to be a Parquet file|No magic bytes found|Invalid footer length|Footer length error)/,
  /Could not read enough bytes from file ".*\.parquet"/,
  /^(Invalid Error: )?(TProtocolException|Out of buffer|don't know what type|invalid TType|Variable-length int)/,
  /^Invalid Error: (Decode bit width|Parquet file is likely corrupted|Payload value bigger|Prefetch registered)/,
  /^Not implemented Error: Unimplemented TIMESTAMP encoding/,
];
const FILE_REFUSED = /^(IO|Permission) Error|^TransactionContext Error: Failed to commit: (Cannot|Could not) \w+ file /;
const CSV_REFUSED = /CSV Error on Line|Parallel CSV Reader/;
const TABLE_REFUSED = /^(Binder|Catalog|Constraint|Dependency|Not implemented) Error/;
/** DuckDB says so before it reads any cell. */
const STATEMENT_REFUSED = /^(Binder|Parser|Catalog|TransactionContext) Error/;

/** The failure that a text of DuckDB means; undefined for any other. Texts may hold cells: few of them are repeated. */
function failureOf(text: string, file: string): UserError | undefined {
  const sentence = text
    .split('\n', 1)[0]
    .replace(/^[A-Z]\w+( \w+)? Error: /, '')
    .replace(/\.$/, '');
  if (FILE_IN_USE.test(text)) {
    return transientError(`${file} is in use: ${lockHolderOf(sentence)}. Close it there, or wait, and run again.`);
  }
  if (DISK_FULL.test(text)) {
    return transientError(`The disk of ${file} is full: make room and run again; ${COMMITTED_IS_KEPT}.`);
  }
  if (DISK_FAILED.test(text)) {
    return transientError(`${file} failed (${sentence}): try again later; ${COMMITTED_IS_KEPT}.`);
  }
  if (OUT_OF_MEMORY.test(text)) {
    return configError(`DuckDB needs more memory for ${file} than memory_limit allows: raise it.`);
  }
  if (DATABASE_TOO_NEW.test(text)) {
    return configError(
      `${file} was made by a newer version of DuckDB than this program has. With that version, write one that can be read ` +
        `here: ATTACH '${file}' AS a (READ_ONLY); ATTACH 'copy.duckdb' AS b (STORAGE_VERSION 'v1.2.0'); COPY FROM DATABASE a TO b.`,
    );
  }
  if (DATABASE_UNREADABLE.test(text)) {
    return configError(
      `${file} is damaged, or is not a database that this DuckDB can read: restore it, or give another.`,
    );
  }
  if (PARQUET_GONE.test(text)) {
    return transientError(
      `A file of ${file} is gone that was to be read: another run removed it. Run again; if it stays so, verify ` +
        'names what is missing, as after a restore without the data of that time.',
    );
  }
  if (PARQUET_DAMAGED.some((pattern) => pattern.test(text))) {
    const path = /["']([^"']+\.parquet)["']/.exec(sentence)?.[1] ?? `A Parquet file of ${file}`;
    return configError(
      `${path} is damaged and cannot be read: restore it, or load its days again into another place. verify names ` +
        'every such file.',
    );
  }
  if (FILE_REFUSED.test(text)) {
    return configError(`${file} cannot be opened or written: ${sentence}.`);
  }
  return undefined;
}

/** Converts an error of DuckDB, or of this program, into a UserError whose message contains no cell. */
export function engineError(thrown: unknown, file: string): UserError {
  if (thrown instanceof UserError) return thrown;
  if (thrown instanceof TypeError || thrown instanceof RangeError) {
    const details = { cause: thrown, detail: defectText(thrown), where: { file } };
    return systemError(`A defect of dfinery-elt, at work on ${file}: please report it.`, details);
  }
  const disk = diskError(thrown, { path: file, consequence: COMMITTED_IS_KEPT });
  if (disk instanceof UserError) return disk;
  const text = messageOf(thrown);
  const refusal = `DuckDB refused a statement on ${file} (${errorClassOf(text)}): please report it.`;
  const detail = STATEMENT_REFUSED.test(text) ? text.split('\n', 1)[0] : errorClassOf(text);
  return failureOf(text, file) ?? systemError(refusal, { detail, where: { file } });
}

/** True if another process has the file open. */
export const isFileInUse = (thrown: unknown): boolean => FILE_IN_USE.test(messageOf(thrown));

/** True if DuckDB refused a statement for what others made of the tables, such as a foreign key. */
export const isTableRefused = (thrown: unknown): boolean => TABLE_REFUSED.test(messageOf(thrown));

/** True if blocks of a database file cannot be read. */
export function isDamagedBlock(thrown: unknown): boolean {
  const text = messageOf(thrown);
  return BLOCK_UNREADABLE.test(text) && !DISK_FAILED.test(text);
}

/** Thrown if a scanned file gives other rows than the scan saw. */
export class MisreadFileError extends UserError {
  constructor(message: string) {
    super('system', message);
  }
}

/** True if DuckDB's reader of CSV refused a scanned file, or found other rows in it. */
export const isMisread = (thrown: unknown): boolean =>
  thrown instanceof MisreadFileError || CSV_REFUSED.test(messageOf(thrown));

export function isOutOfMemory(thrown: unknown): boolean {
  const text = messageOf(thrown);
  return OUT_OF_MEMORY.test(text) && !DISK_FULL.test(text);
}

/** The class of an error, such as `Conversion Error`, and the line of the CSV. The rest of its text may hold cells. */
function errorClassOf(text: string): string {
  const errorClass = /^[A-Za-z ]{1,40} Error/.exec(text)?.[0] ?? 'error';
  const line = /CSV Error on Line: (\d+)/.exec(text)?.[1];
  return line === undefined ? errorClass : `${errorClass}, line ${line}`;
}

function lockHolderOf(text: string): string {
  const holder = /Conflicting lock is held in (.*?\(PID \d+\))/.exec(text)?.[1];
  return holder === undefined ? 'another process holds its lock' : `its lock is held by ${holder}`;
}
