// This folder: the target `ducklake`: tables of DuckLake, whose catalog is plain tables in a DuckDB file. No extension
// is needed to write them: a commit is INSERTs in one transaction. `format/` is the catalog by the specification alone;
// contents.ts adds this program's own tables in it, and is what this log reads, holds and commits on top of.

import { randomUUID } from 'node:crypto';
import { basename, dirname, resolve } from 'node:path';
import { configError, internalError, UserError } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { literal } from '../../cells/types/sql.ts';
import { namingObjects } from '../../engine/naming-objects.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { checkLocalPath, schemeOf } from '../../fs/local-path.ts';
import { checkWritable } from '../../fs/private-folder.ts';
import { openStorage } from '../../storage/open.ts';
import { TABLES } from '../../table/columns.ts';
import { type Difference, difference } from '../../table/differences.ts';
import { lastWindowNumber } from '../../table/receipts.ts';
import type { TableState } from '../../table/state.ts';
import { copyError, isPlainCopy } from '../copies/mark.ts';
import { republish } from '../copies/republish.ts';
import { checkOnlyName, noTableError } from '../failures.ts';
import { type DataFile, type NewFile, without } from '../files/data-file.ts';
import { FieldIds } from '../files/field-ids.ts';
import { FileTable, openWithoutLock, type PlaceWithoutLog } from '../files/file-table.ts';
import type { FilesFormat, OpenFilesOptions } from '../files/files-format.ts';
import { entryChanges, type LoggedColumns, loggedColumns, rangedColumns } from '../files/log-entries.ts';
import { NO_DATE, PARTITION_COLUMN } from '../files/parquet-file.ts';
import {
  DEFAULT_RETENTION_MS,
  eraseFiles,
  expiredFiles,
  type KnownFiles,
  refuseForeignFiles,
  storeFiles,
  storeTime,
  tryEraseFiles,
} from '../files/stored-files.ts';
import { type FileChange, type Layout, LostRace, type Snapshot, type TableLog } from '../files/table-log.ts';
import { Catalog, COPIED } from './catalog.ts';
import {
  CATALOG_TEXTS,
  type CatalogContents,
  createOwnTables,
  expireContents,
  foreignTables,
  isLatest,
  lostNames,
  readContents,
} from './contents.ts';
import { catalogNoteOf } from './data-file.ts';
import { keptPaths } from './format/expire.ts';
import type { CatalogFile } from './format/snapshot.ts';
import { createCatalog, SnapshotWriter } from './format/snapshot-writer.ts';
import { fieldOf, fieldsOf } from './format/types.ts';
import { checkShape, rewriteChanged } from './reconcile.ts';
import { catalogSnapshotOf, stateRows } from './state.ts';

/** Names of the state's rows with the path of the catalog, and with its id, which its copies share. */
const PATH_ENTRY = 'catalog';
const ID_ENTRY = 'id';
/** Path of the object beside the tables that holds the id of the catalog to which they belong. */
const OWNER = '_dfinery/catalog';

export const DUCKLAKE: FilesFormat = {
  noun: 'catalog',
  async open(options, mode) {
    const { place } = options;
    checkLocalPath(place);
    const catalog = new Catalog(place, options);
    const contents = await catalog.read(readContents);
    if (contents === undefined && mode === 'rewrite') throw noTableError(place);
    if (mode !== 'read') {
      await refuseCopies(catalog, contents, options);
      await catalog.checkFileWritable();
    }
    const data = dataOf(catalog, contents, options.data);
    const storage = await openStorage(data.schema, options);
    return openWithoutLock(storage, options, mode, async (open) => {
      const parts = { ...open, dataPath: data.path, catalog: new Catalog(place, options, open.engine) };
      const log = new CatalogLog(parts, options, mode === 'read');
      await log.begin(contents);
      return log;
    });
  },
};

/**
 * Throws a configuration failure for a copy for readers, and for a plain copy of an existing catalog, which has the
 * same data: each would remove files that only the other lists.
 */
async function refuseCopies(
  catalog: Catalog,
  contents: CatalogContents | undefined,
  options: OpenFilesOptions,
): Promise<void> {
  if (typeof contents?.copyOf === 'string') throw copyError(COPIED, catalog.file);
  const original = contents?.state.get(PATH_ENTRY);
  if (original === undefined || !(await isPlainCopy(COPIED, { file: catalog.file, original }, options))) return;
  throw configError(
    `${catalog.file} is a plain copy of ${original}, which has the same data: ` +
      'give that catalog, or put this one in its place. Nothing was done.',
  );
}

/** The locations of the data: the path that the catalog names, and the folder of the schema in it. */
function dataOf(
  catalog: Catalog,
  contents: CatalogContents | undefined,
  given: string | undefined,
): { path: string; schema: string } {
  const absolute = (path: string) => `${schemeOf(path) === undefined ? resolve(path) : path.replace(/\/+$/, '')}/`;
  const wanted = given === undefined ? undefined : absolute(given);
  if (contents !== undefined && wanted !== undefined && wanted !== contents.dataPath) {
    throw configError(`--data is ${given}, but ${catalog.file} has its data in ${contents.dataPath}: leave it out.`);
  }
  const path = contents?.dataPath ?? wanted ?? absolute(`${catalog.file}.files`);
  return { path, schema: `${path}${contents?.schemaPath ?? 'main/'}`.replace(/\/+$/, '') };
}

interface Parts extends PlaceWithoutLog {
  readonly catalog: Catalog;
  readonly dataPath: string;
}

class CatalogLog implements TableLog {
  readonly layout: Layout = {
    hasDateColumn: true,
    fieldIds: (table, columns) => this.#ids.option(table, columns.map(fieldOf)),
  };
  snapshot: Snapshot | undefined;
  readonly #parts: Parts;
  readonly #options: OpenFilesOptions;
  readonly #isReader: boolean;
  #contents: CatalogContents | undefined;
  #ids = new FieldIds(new Map());
  /** The last commit: when it began, by the clock of the store, and the paths of files that it expired. */
  #committed: { readonly purgedAt: number; readonly expired: readonly string[] } = { purgedAt: 0, expired: [] };

  constructor(parts: Parts, options: OpenFilesOptions, isReader: boolean) {
    this.#parts = parts;
    this.#options = options;
    this.#isReader = isReader;
  }

  get #retentionMs(): number {
    const stored = Number(this.#contents?.state.get('retention_ms'));
    return this.#options.retentionMs ?? (Number.isFinite(stored) ? stored : DEFAULT_RETENTION_MS);
  }

  /**
   * Begins with what the catalog had when it was opened; a writer first makes sure that the data are its own, and
   * whole, and that it takes no folder in which others have files.
   */
  async begin(contents: CatalogContents | undefined): Promise<void> {
    const changed = await this.#advanceTo(contents);
    if (!this.#isReader) {
      await this.#noteOwner();
      if (this.snapshot !== undefined) await this.#checkLostFiles();
      else for (const table of TABLES) await refuseForeignFiles(this.#parts.storage, table);
    }
    await this.#takeInChangedFiles(changed);
  }

  async read(): Promise<void> {
    await this.#takeInChangedFiles(await this.#advanceTo(await this.#parts.catalog.read(readContents)));
  }

  /** False if somebody has committed since: a purge removes files at once. */
  async isUnchanged(): Promise<boolean> {
    const contents = await this.#parts.catalog.read((open) => this.#latest(open));
    return tokenOf(contents) === tokenOf(this.#contents);
  }

  /** The contents of the open catalog, which is read only if somebody has committed since it was read last. */
  async #latest(open: Engine): Promise<CatalogContents | undefined> {
    const known = this.#contents;
    return known !== undefined && (await isLatest(open, known)) ? known : readContents(open);
  }

  /**
   * Takes contents as the latest version; returns the files that another program changed. Throws UserError for changes
   * that cannot be followed.
   */
  async #advanceTo(contents: CatalogContents | undefined): Promise<readonly CatalogFile[]> {
    const { catalog, engine } = this.#parts;
    const { snapshot, changed } = catalogSnapshotOf(contents, catalog.file);
    if (contents !== undefined && snapshot !== undefined)
      await checkShape(engine, contents, snapshot.state, catalog.file);
    this.#contents = contents;
    this.#ids = new FieldIds(contents?.tables ?? new Map());
    this.snapshot = snapshot;
    return changed;
  }

  /** Rewrites the files that another program changed, and commits them; for a reader they stay in its run's folder. */
  async #takeInChangedFiles(changed: readonly CatalogFile[]): Promise<void> {
    const { logger, signal, isStateEnough, place } = this.#options;
    if (changed.length === 0 || isStateEnough === true) return;
    const table = new FileTable(place, { ...this.#parts, log: this });
    const rewrite = () => rewriteChanged(table, changed, this.#parts.catalog.file);
    const change = await table.engine.transaction(rewrite, signal);
    if (this.#isReader) {
      const files = [...without(table.snapshot.files, change.removed), ...change.added];
      this.snapshot = { state: change.state, files, outdated: new Set() };
      return;
    }
    await table.commit(change);
    const message = `Took in ${plainCount(changed.length, 'file')} that another program had changed.`;
    logger.info('ducklake.taken_in', message, { files: changed.length });
  }

  /** Stores the files, then commits all tables at once. If it fails before the commit, nothing of them is left. */
  async commit(change: FileChange): Promise<void> {
    const { catalog, storage, engine } = this.#parts;
    const logged = await loggedColumns(engine, change.added, rangedColumns(change.state));
    const purgedAt = change.kind === 'purge' ? await storeTime(storage) : 0;
    let isDecided = false;
    let written: { readonly contents: CatalogContents | undefined; readonly expired: readonly string[] };
    try {
      await storeFiles(storage, change.added);
      written = await catalog.write(async (open) => {
        // The engine may do the work again, after a commit that failed for lack of memory.
        isDecided = false;
        const made = await this.#write(open, change, logged);
        isDecided = true;
        return made;
      });
    } catch (error) {
      // Once the work is done only the commit itself can fail, and then it is unknown whether the files are live.
      if (!isDecided) await storage.erase(change.added.map(({ path }) => path));
      throw error;
    }
    this.#committed = { purgedAt, expired: written.expired };
    const isFirst = this.#contents?.state.get(ID_ENTRY) === undefined;
    await this.#advanceTo(written.contents);
    if (isFirst) {
      await this.#noteOwner().catch((error) => {
        // The rows are committed: a temporary failure does not end the run.
        if (!(error instanceof UserError) || error.kind !== 'transient') throw error;
        const message = `${storage.address}: whose data these are could not be noted; the next run does.`;
        this.#options.logger.warn('catalog.unclaimed', message, { error: error.message });
      });
    }
  }

  /** Notes which catalog owns the data. Throws a configuration failure for another's, whose files would be removed. */
  async #noteOwner(): Promise<void> {
    const { storage, catalog } = this.#parts;
    const id = this.#contents?.state.get(ID_ENTRY);
    const owner = async () => (await storage.read(OWNER))?.toString('utf8');
    const found = await owner();
    if (found === id) return;
    if (found === undefined && id !== undefined && ((await storage.create(OWNER, id)) || (await owner()) === id))
      return;
    throw configError(
      `${storage.address} holds the data of another catalog than ${catalog.file}: give another place for the data ` +
        '(--data), or move that folder away if its catalog is gone for good.',
    );
  }

  /** Writes a change into the open catalog; returns its contents after it, and the paths that a purge expired. */
  async #write(open: Engine, change: FileChange, logged: ReadonlyMap<NewFile, LoggedColumns>) {
    const { catalog, engine, dataPath } = this.#parts;
    const { clock } = this.#options;
    let contents = await this.#latest(open);
    if (tokenOf(contents) !== tokenOf(this.#contents)) throw new LostRace(catalog.file);
    if (contents === undefined) {
      await createCatalog(open, dataPath, isoTime(clock.now()));
      contents = await readContents(open);
      if (contents === undefined) throw internalError('A catalog that was just made is empty.');
    }
    await createOwnTables(open);
    const writer = new SnapshotWriter(open, contents, this.#ids);
    for (const table of TABLES.filter((name) => change.state.tables.includes(name))) {
      const fields = await fieldsOf(engine, table, change.state);
      await writer.shape(table, fields, this.snapshot?.state.tables.includes(table) === true);
    }
    const added = await writer.replaceFiles(change, logged);
    const last = contents.snapshots.at(-1)?.time ?? 0;
    const at = isoTime(Math.max(clock.now(), last + 1));
    await writer.finish(at, `${change.kind}, window ${lastWindowNumber(change.state.receipts)}`);
    await this.#writeState(open, change.state, contents);
    await open.append(
      '_dfinery_files',
      added.map(({ id, file, columns }) => [1, id, catalogNoteOf(file, columns)]),
    );
    const after = change.kind === 'purge' ? await readContents(open) : undefined;
    const expired = after === undefined ? [] : await expireContents(open, after, after.snapshotId, at);
    await writer.summarize(rangedColumns(change.state));
    return { contents: await readContents(open), expired };
  }

  async #writeState(open: Engine, state: TableState, { state: before }: CatalogContents): Promise<void> {
    const wanted = stateRows(state)
      .set('retention_ms', String(this.#retentionMs))
      .set('change', randomUUID())
      .set(PATH_ENTRY, this.#parts.catalog.file)
      .set(ID_ENTRY, before.get(ID_ENTRY) ?? randomUUID());
    const { written, removed } = entryChanges(before, wanted);
    const replaced = [...written.map(([name]) => name), ...removed].map(literal);
    await open.run(`DELETE FROM _dfinery_state WHERE name IN (${replaced.join(', ')})`);
    await open.append(
      '_dfinery_state',
      written.map(([name, value]) => [1, name, value]),
    );
  }

  async foreign(names: readonly string[]): Promise<readonly string[]> {
    const contents = this.#contents;
    if (contents === undefined) return [];
    const found = await this.#parts.catalog.read(async (engine) => [
      ...(await foreignTables(engine, contents)),
      ...(await namingObjects(engine, names, CATALOG_TEXTS)),
    ]);
    return found ?? [];
  }

  /**
   * Checks that the catalog lists each file that was loaded, under the date of its path, with the rows of its windows.
   */
  async check(): Promise<Difference[]> {
    const differences = (await this.#lostFiles()).map((path) =>
      difference('files', `${path} was loaded, and the catalog does not list it any more`),
    );
    // Files that another program changed are left out: their replacements were just written.
    for (const { table, path, rows, date, windows, local } of this.snapshot?.files ?? []) {
      if (local !== undefined) continue;
      const noted = [...windows.values()].reduce((sum, n) => sum + n, 0);
      if (table === 'events' && noted !== rows) {
        differences.push(
          difference('files', `the catalog says ${path} has ${plainCount(rows, 'row')}, its windows ${noted}`),
        );
      }
      if (!path.includes(`/${PARTITION_COLUMN}=${date ?? NO_DATE}/`)) {
        differences.push(difference('files', `the catalog lists ${path} under ${date ?? 'no date'}`));
      }
    }
    return differences;
  }

  /** Throws a configuration failure for a catalog that lacks existing files: they would be removed as unused. */
  async #checkLostFiles(): Promise<void> {
    const [path, ...others] = await this.#lostFiles();
    if (path === undefined) return;
    throw configError(
      `${this.#parts.catalog.file} is damaged: its ducklake_data_file does not list ` +
        `${path}${others.length > 0 ? ` and ${plainCount(others.length, 'other file')}` : ''} any more, which was ` +
        'loaded and is there. Restore the catalog, or load the days again into another one.',
    );
  }

  /** Files of the tables that the catalog does not list, although no other program has deleted or expired them. */
  async #lostFiles(): Promise<string[]> {
    const { storage, catalog } = this.#parts;
    const names = await catalog.read(lostNames);
    if (names === undefined || names.size === 0) return [];
    const lost: string[] = [];
    for (const table of TABLES) {
      for await (const { path } of storage.list(table)) if (names.has(basename(path))) lost.push(path);
    }
    return lost.sort();
  }

  async expired(): Promise<readonly string[]> {
    const { storage, catalog } = this.#parts;
    const now = this.#options.clock.now();
    const retentionMs = this.#retentionMs;
    const expired = this.snapshot === undefined ? [] : await this.#expire(now - retentionMs);
    const contents = this.#contents;
    const kept = contents && (await catalog.read((engine) => keptPaths(engine, contents)));
    const paths = await expiredFiles(storage, this.#known(expired, kept), { now, retentionMs });
    // A copy for readers that ends before the oldest snapshot may name them.
    if (paths.length > 0 && contents?.hasCopies === true) await catalog.publishOlder(contents.snapshots[0].id);
    return paths;
  }

  /** Removes snapshots that others followed before an instant; returns the paths of files that only they had. */
  async #expire(until: number): Promise<string[]> {
    const { catalog } = this.#parts;
    const contents = this.#contents;
    const before = contents?.snapshots.findLast(({ time }, i) => i > 0 && time < until)?.id;
    if (before === undefined) return [];
    const { after, paths } = await catalog.write(async (open) => {
      const current = await readContents(open);
      // After a commit of another writer the next run does it: this one has not read that commit.
      if (current === undefined || tokenOf(current) !== tokenOf(contents)) return { after: contents, paths: [] };
      const removed = await expireContents(open, current, before, isoTime(this.#options.clock.now()));
      return { after: await readContents(open), paths: removed };
    });
    this.#contents = after;
    return paths;
  }

  async tryErase(removed: readonly DataFile[]): Promise<void> {
    const { storage, catalog } = this.#parts;
    await checkOnlyName(catalog.file);
    await checkWritable(dirname(catalog.file));
    await tryEraseFiles(storage, removed, this.#known());
  }

  /**
   * Rewrites the catalog and publishes its copies, so that none names what is erased; then erases all files that it
   * does not list, also of tables that others dropped. A copy that cannot be replaced keeps no file.
   */
  async erase(): Promise<readonly string[]> {
    const { storage, catalog } = this.#parts;
    const { purgedAt, expired } = this.#committed;
    await catalog.rewrite();
    const unerased = await republish(COPIED, { ...this.#options, file: catalog.file });
    for (const table of TABLES) unerased.push(...(await eraseFiles(storage, table, this.#known(expired), purgedAt)));
    return unerased;
  }

  /** The catalog's facts about paths: of `expired` files, which no snapshot has, and of those `kept` for older ones. */
  #known(expired: readonly string[] = [], kept: ReadonlySet<string> = new Set()): KnownFiles {
    const [live, removed] = [new Set(this.#contents?.files.map(({ path }) => path)), new Set(expired)];
    return {
      isLive: (path) => live.has(path),
      leftAt: (path) => (removed.has(path) ? 0 : kept.has(path) ? Number.POSITIVE_INFINITY : undefined),
    };
  }
}

const isoTime = (ms: number): string => new Date(ms).toISOString();

/**
 * A text of what must not change between a read and a commit, or the end of the read: state, columns and files of this
 * program's tables.
 */
function tokenOf(contents: CatalogContents | undefined): string {
  if (contents === undefined) return '';
  const files = contents.files.map(({ id, deleted }) => [id, deleted.positions.length, deleted.files]);
  return JSON.stringify([
    contents.state.get('change'),
    contents.dataPath,
    [...contents.tables],
    files,
    [...contents.inlinedRows],
  ]);
}
