import { statSync } from 'node:fs';
import { configError, type UserError } from '../../base/errors.ts';
import { realFile } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';

// Which database a file is, or is a copy of: a row in the file itself, held against what the file system says of it.

/** A kind of database file whose copies are published. */
export interface CopiedFormat {
  readonly noun: 'database' | 'catalog';
  /** Its table with the mark: one row, with the columns of `Mark`. */
  readonly marks: string;
  /** Opens a file, works on it and closes it. Throws UserError. */
  withFile<T>(options: EngineOptions, work: (engine: Engine) => Promise<T>): Promise<T>;
  /** Throws a configuration failure unless the open file is of this kind and was loaded by this program. */
  check(engine: Engine): Promise<void>;
  /** Does the work of `check`, and also throws if a file that holds rows itself lacks some. */
  checkWhole(engine: Engine): Promise<void>;
  /** The options of ATTACH for a new file with the tables of an open one. */
  newFile(engine: Engine): Promise<string>;
}

/** The mark that identifies a file as a database, or as a copy of one for readers. */
interface Mark {
  readonly database: string;
  /** Identity of the file, which a plain copy of it does not share. */
  readonly file: string;
  /** Id of the database of which this is a copy for readers; null for a database itself. */
  readonly copyOf: string | null;
}

/** The options of an engine, whichever file it opens. */
export type EngineSettings = Omit<EngineOptions, 'file'>;

/** The identity of a file in its file system, which stays when it is moved there; a plain copy has another one. */
export function identityOf(path: string): string {
  const { ino, birthtimeNs } = statSync(path, { bigint: true });
  return `${ino}-${birthtimeNs}`;
}

export async function readMark({ marks }: CopiedFormat, engine: Engine): Promise<Mark> {
  const { database, file, copy_of } = await engine.row(`SELECT database, file, copy_of FROM ${marks}`);
  return { database: String(database), file: String(file), copyOf: copy_of === null ? null : String(copy_of) };
}

/** Stores that a new file replaces another, whose stored identity is `from`. `database`: the new file, as attached. */
export async function moveIdentity(
  { marks }: CopiedFormat,
  engine: Engine,
  { from, to, database = engine.database }: { readonly from: string; readonly to: string; readonly database?: string },
): Promise<void> {
  await engine.run(`UPDATE ${database}.main.${marks} SET file = $2 WHERE file = $1`, [from, to]);
}

/** The id of a database, if the file is the database itself: neither a plain copy of it, nor a copy for readers. */
export const databaseOf = ({ database, file, copyOf }: Mark, path: string): string | undefined =>
  copyOf === null && file === identityOf(realFile(path)) ? database : undefined;

/** Throws a configuration failure for a copy for readers, since only its database may be changed. */
export async function refuseCopy(format: CopiedFormat, engine: Engine): Promise<void> {
  if ((await readMark(format, engine)).copyOf !== null) throw copyError(format, engine.file);
}

const copyError = ({ noun }: CopiedFormat, file: string): UserError =>
  configError(
    `${file} is a copy for readers: give the ${noun} that it was made from, which publishes its copies anew. Nothing was done.`,
  );

/** The id of the database in a file, if that is no copy of one. */
export async function databaseAt(
  format: CopiedFormat,
  file: string,
  options: EngineSettings,
): Promise<string | undefined> {
  for (;;) {
    const identity = identityOf(realFile(file));
    const mark = await markOf(format, file, options);
    // A purge or `compact` may have put a new file in its place meanwhile: its mark is then to be read, not that of the
    // former one.
    if (identityOf(realFile(file)) === identity) return databaseOf(mark, file);
  }
}

/** Reads the mark of a file, which is opened for reading and checked. */
export function markOf(
  format: CopiedFormat,
  file: string,
  options: EngineSettings,
  check = format.check,
): Promise<Mark> {
  return format.withFile({ ...options, file, readOnly: true }, async (engine) => {
    await check(engine);
    return readMark(format, engine);
  });
}
