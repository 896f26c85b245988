import { configError, defectText, messageOf, systemError, transientError, UserError } from '../../base/errors.ts';
import { COMMITTED_IS_KEPT, diskError, isDiskFull } from '../../fs/disk-failure.ts';

// What DuckDB's errors mean. They have a class and a text: `IO Error: No space left on device`. A text may quote cells,
// which hold any words: the class comes first.

/** How errors of files and memory begin: `IO Error: Could not set lock on file "x.duckdb": …`. */
const FILE_ERROR =
  /^((IO|Permission|FATAL|INTERNAL|Out of Memory|Serialization|TransactionContext) Error|Invalid Input Error: Error opening)/;
/** True for an error of files or memory, which quotes no cell. That of a commit quotes a key that is there already. */
const isFileError = (text: string): boolean => FILE_ERROR.test(text) && !/duplicate key/i.test(text);
/** True for an error of files or memory that says this, wherever in its text. */
const inFileError = (pattern: RegExp) => (text: string) => isFileError(text) && pattern.test(text);

/** Errors of statements that do not fit the tables, which quote no cell: `Catalog Error: Table with name x …`. */
const STATEMENT_ERROR = /^(Binder|Parser|Catalog|Dependency|Missing Extension|Not implemented) Error/;

interface Failure {
  /** True for the text of an error that means this. It looks at no text in which a cell may stand. */
  readonly matches: (text: string) => boolean;
  /** `sentence`: the first line of the text, without its class. The others: as `engineError` has them. */
  readonly toUserError: (place: string, sentence: string, pathOnDisk: string) => UserError;
}

/** The failure for a write-ahead log beside no file, or beside another one than its own. */
export const strayWalError = (file: string): UserError =>
  configError(`${file}.wal belongs to a file that is gone: put that back as ${file}, or remove ${file}.wal.`);

/** What texts of DuckDB mean. The first failure that a text fits counts: a narrow one stands before a wide one. */
const FAILURES = {
  fileInUse: {
    matches: inFileError(/Could not set lock on file|File is already open in|being used by another process/),
    toUserError: (place, sentence) => {
      const holder = /Conflicting lock is held in (.*?\(PID \d+\))/.exec(sentence)?.[1];
      const why = holder === undefined ? 'another process holds its lock' : `its lock is held by ${holder}`;
      return transientError(`${place} is in use: ${why}. Close it there, or wait, and run again.`);
    },
  },
  diskFull: {
    matches: inFileError(
      /No space left|not enough space|disk (is )?full|File too large|quota exceeded|max_temp_directory_size/i,
    ),
    toUserError: (_place, _sentence, pathOnDisk) =>
      transientError(`The disk of ${pathOnDisk} is full: make room and run again; ${COMMITTED_IS_KEPT}.`),
  },
  diskFailed: {
    // After `fsync failed!` every statement of the instance fails, with this message in its text.
    matches: inFileError(/Input\/output error|Stale file handle|fsync failed!/),
    toUserError: (place, sentence) =>
      transientError(`${place} failed (${sentence}): try again later; ${COMMITTED_IS_KEPT}.`),
  },
  outOfMemory: {
    matches: inFileError(/^Out of Memory|(could not|failed to) (allocate|pin)/),
    toUserError: (place) => configError(`DuckDB needs more memory for ${place} than memory_limit allows: raise it.`),
  },
  databaseTooNew: {
    matches: inFileError(/database file with version number|newer version of DuckDB/),
    toUserError: (place) =>
      configError(
        `${place} was made by a newer version of DuckDB than this program has. With that version, write one that can be read ` +
          `here: ATTACH '${place}' AS a (READ_ONLY); ATTACH 'copy.duckdb' AS b (STORAGE_VERSION 'v1.2.0'); COPY FROM DATABASE a TO b.`,
      ),
  },
  fileGone: {
    matches: inFileError(
      /No files found that match|Cannot open file ".*(\.csv|\.parquet|\/dfinery-spool-\w{6}\/.*)": No such file/s,
    ),
    toUserError: (place, sentence) =>
      transientError(
        `A file that ${place} needs is gone (${sentence}): another run removed it, or a cleaner of temporary files. Run ` +
          'again. If it fails again, set spool_dir to a folder that nothing cleans; verify names what a place lacks.',
      ),
  },
  parquetDamaged: {
    matches: (text) =>
      // The copy of a bucket's file is named by a UUID alone.
      inFileError(/Could not read enough bytes from file ".*(\.parquet|-[0-9a-f]{12})"/s)(text) ||
      [
        /^Invalid Input Error: (Failed to read (Parquet )?file "|Invalid string encoding found in Parquet file)/,
        // The footer names a column by bytes that are no text.
        /^Invalid Input Error: Invalid unicode \(byte sequence mismatch\) detected in value construction/,
        /^Invalid Input Error: (File '.*' too small to be a Parquet file|No magic bytes found|Invalid footer length|Footer length error)/,
        /^(Invalid Error: )?(TProtocolException|Out of buffer|don't know what type|invalid TType|Variable-length int)/,
        /^Invalid Error: (Decode bit width|Parquet file is likely corrupted|Payload value bigger|Prefetch registered)/,
        /^Not implemented Error: Unimplemented TIMESTAMP encoding/,
      ].some((beginning) => beginning.test(text)),
    toUserError: (place, sentence) => {
      const path = /["']([^"']+\.parquet)["']/.exec(sentence)?.[1] ?? `A Parquet file of ${place}`;
      const day = /.*event_date=([\d-]{10})\//.exec(sentence)?.[1];
      const profilesRemedy = /\/user_profiles\/[^/]*["']/.test(sentence)
        ? 'remove it and run sync with user_profiles set to true'
        : 'load it again';
      const remedy = day === undefined ? profilesRemedy : `read its day again with sync … --from ${day} --to ${day}`;
      return configError(
        `${path} is damaged and cannot be read: restore it, or ${remedy}. verify names every such file.`,
      );
    },
  },
  databaseUnreadable: {
    matches: inFileError(
      /not a valid DuckDB database file|storage version|computed checksum|not read enough bytes from file ".*(?<!\.csv)"/i,
    ),
    toUserError: (place) =>
      configError(`${place} is damaged, or is not a database that this DuckDB can read: restore it, or give another.`),
  },
  strayWal: {
    // A log of its own file that is damaged has a wrong checksum: `databaseUnreadable`.
    matches: (text) => /^\w+ Error: Failure while replaying WAL file/.test(text),
    toUserError: strayWalError,
  },
  fileRefused: {
    // `IO Error: Cannot open file "/lake/x.duckdb": Permission denied`, and whatever else no failure above has.
    matches: (text) =>
      /^(IO|Permission) Error|^TransactionContext Error: Failed to commit: (Cannot|Could not) \w+ file /.test(text),
    toUserError: (place, sentence) => configError(`${place} cannot be opened or written: ${sentence}.`),
  },
} satisfies Record<string, Failure>;

const failureOf = (text: string): Failure | undefined =>
  Object.values<Failure>(FAILURES).find(({ matches }) => matches(text));

/** True for an error of DuckDB that means this failure. */
export const isEngineFailure = (thrown: unknown, kind: keyof typeof FAILURES): boolean =>
  failureOf(messageOf(thrown)) === FAILURES[kind];

/**
 * Converts an error of DuckDB, or of this program, into a UserError whose message contains no cell. `place`: the file or
 * the place at work. `pathOnDisk`: one on the disk that DuckDB writes to.
 */
export function engineError(thrown: unknown, place: string, pathOnDisk: string = place): UserError {
  if (thrown instanceof UserError) return thrown;
  const subject = isDiskFull(thrown) ? pathOnDisk : place;
  const disk = diskError(thrown, { path: place, subject, consequence: COMMITTED_IS_KEPT });
  if (disk instanceof UserError) return disk;
  // DuckDB and the system throw plain errors.
  if (thrown instanceof Error && Object.getPrototypeOf(thrown) !== Error.prototype) {
    const details = { cause: thrown, detail: defectText(thrown) };
    return systemError(`A defect of dfinery-elt, at work on ${place}: please report it.`, details);
  }
  const text = messageOf(thrown);
  const sentence = firstLineOf(text)
    .replace(/^[A-Z]\w+( \w+)? Error: /, '')
    .replace(/\.$/, '');
  const failure = failureOf(text);
  if (failure !== undefined) return failure.toUserError(place, sentence, pathOnDisk);
  const refusal = `DuckDB refused a statement on ${place} (${errorClassOf(text)}): please report it.`;
  return systemError(refusal, { detail: withoutCells(text) });
}

/** What DuckDB refused, if that may be for a change of the tables by others, such as a foreign key; else undefined. */
export function tableRefusalOf(thrown: unknown): string | undefined {
  const text = messageOf(thrown);
  return STATEMENT_ERROR.test(text) || text.startsWith('Constraint Error') ? withoutCells(text) : undefined;
}

/** True if blocks of a database file cannot be read, and neither disk nor memory is why. */
export const isDamagedBlock = (thrown: unknown): boolean =>
  isFileError(messageOf(thrown)) &&
  !(['diskFailed', 'diskFull', 'outOfMemory'] as const).some((kind) => isEngineFailure(thrown, kind));

/** Thrown if a scanned file gives other rows than the scan saw. */
export class MisreadFileError extends UserError {
  constructor(message: string) {
    super('system', message);
  }
}

/** How an error of a cell that does not fit its type begins. All that were scanned fit: the reader split rows wrongly. */
const CELL_ERROR = /^(Conversion Error|Invalid Input Error: (Could not parse string|Malformed JSON))/;

/** True if DuckDB's reader of CSV refused a scanned file, or found other rows or cells in it. */
export const isCsvMisread = (thrown: unknown): boolean => {
  const text = messageOf(thrown);
  return (
    thrown instanceof MisreadFileError || CELL_ERROR.test(text) || /CSV Error on Line|Parallel CSV Reader/.test(text)
  );
};

/** What may be shown of an error that is not about a file. */
const withoutCells = (text: string): string => (STATEMENT_ERROR.test(text) ? firstLineOf(text) : errorClassOf(text));

/** The class of an error, such as `Conversion Error`, and the line of the CSV. The rest of its text may hold cells. */
function errorClassOf(text: string): string {
  const errorClass = /^[A-Za-z ]{1,40} Error/.exec(text)?.[0] ?? 'error';
  const line = /CSV Error on Line: (\d+)/.exec(text)?.[1];
  return line === undefined ? errorClass : `${errorClass}, line ${line}`;
}

const firstLineOf = (text: string): string => text.split('\n', 1)[0];
