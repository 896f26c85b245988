import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import { configError, messageOf } from '../../base/errors.ts';
import { NEW_DATABASE, withNewDatabase } from '../../engine/new-database.ts';
import { realFile, SMALL_BLOCKS } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import { withFile } from '../../engine/session/open.ts';
import { moveFile } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { makeFolders } from '../../fs/private-folder.ts';
import type { CopiedFormat } from '../copies/mark.ts';
import { publishOld } from '../copies/republish.ts';
import { noTableError } from '../failures.ts';
import { MARKS, readContents } from './contents.ts';
import { FORMAT, lastSnapshot } from './format/snapshot.ts';

type CatalogOptions = Pick<EngineOptions, 'lockWaitMs' | 'clock' | 'signal'>;

/** A catalog of DuckLake in a DuckDB file. It is open only while something is read or written. */
export class Catalog {
  readonly file: string;
  readonly #options: CatalogOptions;
  readonly #shared: Engine | undefined;

  /** `shared`: the engine in whose instance of DuckDB the catalog is read and written, if there is one. */
  constructor(file: string, options: CatalogOptions, shared?: Engine) {
    this.file = realFile(file);
    const { lockWaitMs, clock, signal } = options;
    this.#options = { lockWaitMs, clock, signal };
    this.#shared = shared;
  }

  /** Runs work on the open catalog; undefined if there is no file. Throws UserError. */
  async read<T>(work: (engine: Engine) => Promise<T>): Promise<T | undefined> {
    return existsSync(this.file)
      ? this.#open({ readOnly: true, shared: this.#shared }, (engine) => work(engine).catch(throwIfDamaged(this.file)))
      : undefined;
  }

  /** Runs work in one transaction of the catalog, which is made if missing. Throws what it throws, or UserError. */
  write<T>(work: (engine: Engine) => Promise<T>): Promise<T> {
    makeFolders(dirname(this.file));
    const inTransaction = (engine: Engine) => engine.transaction(() => work(engine), this.#options.signal);
    return this.#open({ shared: this.#shared }, inTransaction);
  }

  /**
   * Throws UserError unless the catalog can be written, or made if there is none: a run finds out before its first
   * export.
   */
  async checkFileWritable(): Promise<void> {
    const folder = dirname(this.file);
    try {
      makeFolders(folder);
      await access(folder, constants.W_OK | constants.X_OK);
      if (existsSync(this.file)) await access(this.file, constants.W_OK);
    } catch (error) {
      throw diskError(error, { what: this.file, path: this.file, consequence: 'nothing was changed' });
    }
  }

  /** Publishes each copy again that ends before this snapshot: it may need files that only earlier ones have. */
  publishOlder(snapshot: number): Promise<void> {
    const isOlder = async (copy: Engine) => (await lastSnapshot(copy)) < snapshot;
    return publishOld(COPIED, { ...this.#options, file: this.file }, isOlder);
  }

  /** Rewrites the catalog, so that no byte of the rows that were removed from it remains. Throws UserError. */
  async rewrite(): Promise<void> {
    await this.#open({}, async (engine) => {
      await engine.emptyWal();
      const fill = () => engine.run(`COPY FROM DATABASE ${engine.database} TO ${NEW_DATABASE}`);
      await withNewDatabase(COPIED, engine, fill, (path) => moveFile(path, this.file));
    });
  }

  #open<T>(how: Pick<EngineOptions, 'readOnly' | 'shared'>, work: (engine: Engine) => Promise<T>): Promise<T> {
    return openCatalog({ ...this.#options, ...how, file: this.file }, work);
  }
}

const openCatalog = <T>(options: EngineOptions, work: (engine: Engine) => Promise<T>): Promise<T> =>
  withFile({ ...options, smallBlocks: true }, work);

export const COPIED: CopiedFormat = {
  noun: 'catalog',
  marks: MARKS,
  withFile: openCatalog,
  check: checkOurs,
  checkWhole: checkOurs,
  newFile: async () => SMALL_BLOCKS,
};

async function checkOurs(engine: Engine): Promise<void> {
  const contents = await readContents(engine).catch(throwIfDamaged(engine.file));
  if (contents?.copyOf !== undefined) return;
  throw noTableError(engine.file);
}

/**
 * Throws an error of DuckDB on, as UserError if the catalog is damaged: the queries fit every whole one of this format.
 */
const throwIfDamaged = (file: string) => (thrown: unknown) => {
  const text = messageOf(thrown);
  if (!/^(Catalog|Binder|Conversion) Error/.test(text)) throw thrown;
  throw configError(
    `${file} is no whole catalog of DuckLake ${FORMAT}, since a table or a column of it is missing or of another ` +
      'type: restore it, or load the days again into another file.',
    { internal: text.split('\n')[0], where: { file } },
  );
};
