import { configError, defectText, messageOf, systemError, transientError, UserError } from '../../base/errors.ts';
import { COMMITTED_IS_KEPT, diskError } from '../../fs/disk-failure.ts';

// DuckDB's messages, by what each says.

/** How errors begin that are about files or memory. Others may quote cells, which hold any words. */
const FILE_ERROR =
  /^(?!.*[Dd]uplicate key)((IO|Permission|FATAL|INTERNAL|Out of Memory|Serialization|TransactionContext) Error|Invalid Input Error: Error opening)/s;

const inFileError = (words: RegExp): RegExp => new RegExp(`${FILE_ERROR.source}.*(${words.source})`, `s${words.flags}`);

const FILE_IN_USE = inFileError(/Could not set lock on file|File is already open in|being used by another process/);
const DISK_FULL = inFileError(
  /No space left|not enough space|disk (is )?full|File too large|quota exceeded|max_temp_directory_size/i,
);
/** After `fsync failed!` every statement of the instance fails, with this message in its text. */
const DISK_FAILED = inFileError(/Input\/output error|Stale file handle|fsync failed!/);
const OUT_OF_MEMORY = [/^Out of Memory/, inFileError(/(could not|failed to) (allocate|pin)/)];
const DATABASE_TOO_NEW = inFileError(/database file with version number|newer version of DuckDB/);
const DATABASE_UNREADABLE = inFileError(/not a valid DuckDB database file|storage version|checksum/i);
const BLOCK_UNREADABLE = /checksum|Corrupt|Serialization Error|^IO Error|INTERNAL Error/i;
const PARQUET_GONE = inFileError(/No files found that match|Cannot open file ".*\.parquet": No such file/);
const PARQUET_DAMAGED = [
  /^Invalid Input Error: (Failed to read file ".*\.parquet"|Invalid string encoding found in Parquet file)/,
  /^Invalid Input Error: (File '.*' too small to be a Parquet file|No magic bytes found|Invalid footer length|Footer length error)/,
  inFileError(/Could not read enough bytes from file ".*\.parquet"/),
  /^(Invalid Error: )?(TProtocolException|Out of buffer|don't know what type|invalid TType|Variable-length int)/,
  /^Invalid Error: (Decode bit width|Parquet file is likely corrupted|Payload value bigger|Prefetch registered)/,
  /^Not implemented Error: Unimplemented TIMESTAMP encoding/,
];
const FILE_REFUSED = /^(IO|Permission) Error|^TransactionContext Error: Failed to commit: (Cannot|Could not) \w+ file /;
const CSV_REFUSED = /CSV Error on Line|Parallel CSV Reader/;
const TABLE_REFUSED = /^(Binder|Catalog|Constraint|Dependency|Not implemented) Error/;
/** Such errors quote no cell. */
const STATEMENT_REFUSED = /^(Binder|Parser|Catalog|Dependency|Not implemented) Error/;

interface Failure {
  readonly patterns: readonly RegExp[];
  /** `sentence`: the first line of the text, without its class. */
  readonly of: (file: string, sentence: string) => UserError;
}

/** What texts of DuckDB mean. The first failure counts of which a pattern matches. */
const FAILURES: readonly Failure[] = [
  {
    patterns: [FILE_IN_USE],
    of: (file, sentence) =>
      transientError(`${file} is in use: ${lockHolderOf(sentence)}. Close it there, or wait, and run again.`),
  },
  {
    patterns: [DISK_FULL],
    of: (file) => transientError(`The disk of ${file} is full: make room and run again; ${COMMITTED_IS_KEPT}.`),
  },
  {
    patterns: [DISK_FAILED],
    of: (file, sentence) => transientError(`${file} failed (${sentence}): try again later; ${COMMITTED_IS_KEPT}.`),
  },
  {
    patterns: OUT_OF_MEMORY,
    of: (file) => configError(`DuckDB needs more memory for ${file} than memory_limit allows: raise it.`),
  },
  {
    patterns: [DATABASE_TOO_NEW],
    of: (file) =>
      configError(
        `${file} was made by a newer version of DuckDB than this program has. With that version, write one that can be read ` +
          `here: ATTACH '${file}' AS a (READ_ONLY); ATTACH 'copy.duckdb' AS b (STORAGE_VERSION 'v1.2.0'); COPY FROM DATABASE a TO b.`,
      ),
  },
  {
    patterns: [DATABASE_UNREADABLE],
    of: (file) =>
      configError(`${file} is damaged, or is not a database that this DuckDB can read: restore it, or give another.`),
  },
  {
    patterns: [PARQUET_GONE],
    of: (file) =>
      transientError(
        `A file of ${file} is gone that was to be read: another run removed it. Run again; if it stays so, verify ` +
          'names what is missing, as after a restore without the data of that time.',
      ),
  },
  {
    patterns: PARQUET_DAMAGED,
    of: (file, sentence) => {
      const path = /["']([^"']+\.parquet)["']/.exec(sentence)?.[1] ?? `A Parquet file of ${file}`;
      const day = /.*event_date=([\d-]{10})\//.exec(sentence)?.[1];
      const remedy = day === undefined ? 'load it again' : `read its day again with sync … --from ${day} --to ${day}`;
      return configError(
        `${path} is damaged and cannot be read: restore it, or ${remedy}. verify names every such file.`,
      );
    },
  },
  {
    patterns: [FILE_REFUSED],
    of: (file, sentence) => configError(`${file} cannot be opened or written: ${sentence}.`),
  },
];

/** The failure that a text of DuckDB means; undefined for any other. */
function failureOf(text: string, file: string): UserError | undefined {
  const sentence = firstLineOf(text)
    .replace(/^[A-Z]\w+( \w+)? Error: /, '')
    .replace(/\.$/, '');
  return findFailure(text)?.of(file, sentence);
}

const findFailure = (text: string) => FAILURES.find(({ patterns }) => matches(patterns, text));

/** Converts an error of DuckDB, or of this program, into a UserError whose message contains no cell. */
export function engineError(thrown: unknown, file: string): UserError {
  if (thrown instanceof UserError) return thrown;
  const disk = diskError(thrown, { path: file, consequence: COMMITTED_IS_KEPT });
  if (disk instanceof UserError) return disk;
  // DuckDB and the system throw plain errors.
  if (thrown instanceof Error && Object.getPrototypeOf(thrown) !== Error.prototype) {
    const details = { cause: thrown, detail: defectText(thrown), where: { file } };
    return systemError(`A defect of dfinery-elt, at work on ${file}: please report it.`, details);
  }
  const text = messageOf(thrown);
  const refusal = `DuckDB refused a statement on ${file} (${errorClassOf(text)}): please report it.`;
  return failureOf(text, file) ?? systemError(refusal, { detail: withoutCells(text), where: { file } });
}

/** True if another process has the file open. */
export const isFileInUse = (thrown: unknown): boolean => FILE_IN_USE.test(messageOf(thrown));

/** Why DuckDB refused a statement, if for what others made of the tables, such as a foreign key; else undefined. */
export function tableRefusalOf(thrown: unknown): string | undefined {
  const text = messageOf(thrown);
  return TABLE_REFUSED.test(text) ? withoutCells(text) : undefined;
}

/** True if the bytes of a Parquet file are no such file, or a broken one. */
export const isDamagedParquet = (thrown: unknown): boolean =>
  findFailure(messageOf(thrown))?.patterns === PARQUET_DAMAGED;

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
  return matches(OUT_OF_MEMORY, text) && !DISK_FULL.test(text);
}

/** What may be shown of an error that is not about a file. */
const withoutCells = (text: string): string => (STATEMENT_REFUSED.test(text) ? firstLineOf(text) : errorClassOf(text));

/** The class of an error, such as `Conversion Error`, and the line of the CSV. The rest of its text may hold cells. */
function errorClassOf(text: string): string {
  const errorClass = /^[A-Za-z ]{1,40} Error/.exec(text)?.[0] ?? 'error';
  const line = /CSV Error on Line: (\d+)/.exec(text)?.[1];
  return line === undefined ? errorClass : `${errorClass}, line ${line}`;
}

const matches = (patterns: readonly RegExp[], text: string): boolean => patterns.some((pattern) => pattern.test(text));

const firstLineOf = (text: string): string => text.split('\n', 1)[0];

function lockHolderOf(text: string): string {
  const holder = /Conflicting lock is held in (.*?\(PID \d+\))/.exec(text)?.[1];
  return holder === undefined ? 'another process holds its lock' : `its lock is held by ${holder}`;
}
