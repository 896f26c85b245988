// This folder: where tables of files are stored: a folder of a disk, or a bucket.

/** An object of a store, or a file of a folder. */
export interface Stored {
  /** From the root of the store, with `/`. */
  readonly path: string;
  readonly bytes: number;
  /** When it was written, by the store's own clock; ms since 1970. */
  readonly modified: number;
  /** Names that its bytes have: on a disk another one would keep them when this one is removed. */
  readonly names: number;
}

/** Of a Parquet file the columns that are wanted. */
export interface ParquetPart {
  /** Of the whole file. */
  readonly bytes: number;
  /** A column that the file lacks is no failure. */
  readonly columns: ReadonlySet<string>;
}

/**
 * The storage operations that tables need. Paths are relative to the root and use `/`. Every method throws a UserError that
 * names the address: `config` if the user must act, `transient` if a retry may succeed.
 */
export interface Storage {
  /** As it was given, for messages. */
  readonly address: string;
  /** A folder on the same disk as the root, for files that `putFile` is to take; none where there is no disk. */
  readonly workFolder: string | undefined;
  /** A whole object of at most `MAX_READ_BYTES`; undefined when there is none. */
  read(path: string): Promise<Buffer | undefined>;
  /** Everything below a folder whose path comes after `after`, in order of the paths' bytes. */
  list(folder: string, after?: string): AsyncGenerator<Stored, void, undefined>;
  /** Puts an object where none is, whole and lasting; false when one is there, which then stays as it was. */
  create(path: string, text: string): Promise<boolean>;
  /** Puts an object, or replaces one: readers see the old or the new. */
  write(path: string, text: string): Promise<void>;
  /** Takes a local file, which is gone or useless afterwards, to a path that nothing has. */
  putFile(file: string, path: string): Promise<void>;
  /**
   * A local file with an object's content: the object itself on a disk, else a copy at `copy`, which may hold no more than the part
   * that is wanted. Read only.
   */
  localFile(path: string, copy: string, part?: ParquetPart): Promise<string>;
  /** Removes objects; missing ones are no failure. */
  remove(paths: readonly string[]): Promise<void>;
  /** Removes objects and every earlier version that the store has of them. */
  erase(paths: readonly string[]): Promise<void>;
  /**
   * Removes everything below a folder but the latest version of the objects to keep: earlier versions that the store has,
   * and uploads that were begun before `until` (ms, by the store's clock) and never finished.
   */
  eraseAllBut(
    folder: string,
    isKept: (object: Pick<Stored, 'path' | 'modified'>) => boolean,
    until: number,
  ): Promise<void>;
  /**
   * Checks that `eraseAllBut` would be permitted, with an object of its own. `paths`: what is to be erased. Throws a
   * configuration failure that names the missing permission.
   */
  tryErase(paths: readonly string[]): Promise<void>;
  close(): void;
}

/** A log entry or checkpoint larger than this is nothing that this program writes. */
export const MAX_READ_BYTES = 512 * 1024 * 1024;
