// This folder: the target `parquet`: a folder of Parquet files that readers find by a glob pattern. Its log is a
// manifest; a change is a journal of moves.

import { chmod, readdir, rm, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import pLimit from 'p-limit';
import { codeOf, configError, EXIT, transientError, UserError } from '../../base/errors.ts';
import { waitedFor } from '../../base/retry.ts';
import { LOG_ID } from '../../cells/columns/groups.ts';
import type { Engine } from '../../engine/session/engine.ts';
import { openEngine } from '../../engine/session/open.ts';
import { columnOfSource } from '../../engine/views.ts';
import { OWNER_FILE, removeTemporaries, syncFile } from '../../fs/atomic-file.ts';
import { checkLocalPath } from '../../fs/local-path.ts';
import { checkWritable, makeFolders } from '../../fs/private-folder.ts';
import { DiskStorage } from '../../storage/disk.ts';
import { TABLES } from '../../table/columns.ts';
import { type Difference, difference } from '../../table/differences.ts';
import { checkOnlyName, filesError, folderError, noTableError } from '../failures.ts';
import type { DataFile, NewFile } from '../files/data-file.ts';
import { openWithoutLock } from '../files/file-table.ts';
import type { FilesFormat, OpenFilesOptions, OpenPlace } from '../files/files-format.ts';
import { FILE, forgetReadFiles, readFiles, readFilesWithPaths, writeFile } from '../files/parquet-file.ts';
import { FILE_CONCURRENCY, isTemporary } from '../files/stored-files.ts';
import { type FileChange, filesAfter, type Layout, type Snapshot, type TableLog } from '../files/table-log.ts';
import { execute, type Move, recover } from './journal.ts';
import { type FolderPaths, manifestOf, parseManifest, pathsIn, readIfThere, snapshotOf } from './manifest.ts';

const LAYOUT: Layout = { hasOneFilePerDate: true };
const POLL_MS = 100;
const LEFT_OVER = { recursive: true, force: true } as const;

export const PARQUET: FilesFormat = {
  noun: 'folder',
  async open(options, mode) {
    checkLocalPath(options.place);
    const paths = pathsIn(options.place);
    try {
      if (mode === 'read') {
        return await openWithoutLock(new DiskStorage(paths.root), options, mode, async ({ engine }) => {
          const log = new FolderLog(paths, engine, options);
          await log.read();
          return log;
        });
      }
      if (mode === 'rewrite' && !(await hasOwnFiles(paths))) throw noTableError(paths.root);
      await refuseForeign(paths);
      makeFolders(paths.own);
      return await openForWriting(paths, options);
    } catch (error) {
      throw folderError(error, paths.root);
    }
  },

  /** If a live writer holds the lock, it finishes the change itself. */
  async finishChange(options) {
    const paths = pathsIn(options.place);
    try {
      if ((await readIfThere(paths.journal)) === undefined) return;
      await (await openForWriting(paths, { ...options, lockWaitMs: 0 })).close();
    } catch (error) {
      options.signal?.throwIfAborted();
      if (!(error instanceof UserError) || error.exitCode !== EXIT.later) throw filesError(error, paths.root);
    }
  },
};

async function openForWriting(paths: FolderPaths, options: OpenFilesOptions): Promise<OpenPlace> {
  let engine: Engine | undefined;
  try {
    engine = await openEngine({ ...options, file: paths.lock });
    await forgetReadFiles(engine);
    if (await recover(paths)) {
      options.logger.warn('parquet.recovered', 'A run that died while it committed a window is finished now.');
    }
    await rm(paths.temporary, LEFT_OVER);
    makeFolders(paths.temporary);
    for (const path of [paths.journal, paths.manifest]) await removeTemporaries(path, 0, 0);
    const runs = join(paths.own, 'runs');
    for (const name of (await entriesOf(runs)).filter(isTemporary)) await rm(join(runs, name), LEFT_OVER);
    const log = new FolderLog(paths, engine, options);
    await log.read();
    const storage = new DiskStorage(paths.root);
    return { storage, log, engine, folder: paths.temporary, close: () => log.close() };
  } catch (error) {
    await engine?.close();
    throw error;
  }
}

class FolderLog implements TableLog {
  readonly layout = LAYOUT;
  snapshot: Snapshot | undefined;
  readonly #paths: FolderPaths;
  readonly #engine: Engine;
  readonly #options: OpenFilesOptions;
  #text: string | undefined;
  /** True if a change may have a journal and is not complete, so that its files must stay. */
  #isPending = false;

  constructor(paths: FolderPaths, engine: Engine, options: OpenFilesOptions) {
    this.#paths = paths;
    this.#engine = engine;
    this.#options = options;
  }

  async commit(change: FileChange): Promise<void> {
    const { root } = this.#paths;
    const files = filesAfter(this.snapshot?.files ?? [], change);
    const snapshot = { state: change.state, files, outdated: new Set<never>() };
    const manifest = manifestOf(snapshot);
    try {
      const steps = await orderedSteps(this.#engine, change, this.#paths);
      const waiting = steps.flatMap((step) => ('from' in step ? [join(root, step.from)] : []));
      await pLimit(FILE_CONCURRENCY).map(waiting, (path) => chmod(path, OWNER_FILE).then(() => syncFile(path)));
      this.#isPending = true;
      await execute(this.#paths, { v: 1, steps, manifest });
    } catch (error) {
      throw folderError(error, root);
    }
    this.#isPending = false;
    this.snapshot = snapshot;
  }

  async read(): Promise<void> {
    const { root, manifest, journal } = this.#paths;
    if (this.#isPending) await recover(this.#paths);
    this.#isPending = false;
    // During a change the manifest is not valid.
    const pending = `${root} has a change that is not finished: wait for its writer, or let one run that may write finish it.`;
    const policy = { waitMs: this.#options.lockWaitMs, pauseMs: POLL_MS, maxPauseMs: POLL_MS };
    const ended = async () => ((await readIfThere(journal)) === undefined ? 'ended' : undefined);
    if ((await waitedFor(policy, this.#options, ended)) === undefined) throw transientError(pending);
    this.#text = await readIfThere(manifest);
    this.snapshot = this.#text === undefined ? undefined : snapshotOf(parseManifest(this.#text, manifest));
  }

  async isUnchanged(): Promise<boolean> {
    if ((await readIfThere(this.#paths.journal)) !== undefined) return false;
    return (await readIfThere(this.#paths.manifest)) === this.#text;
  }

  /** Finds files that readers see although they are not in the manifest, also behind a link. */
  async check(): Promise<Difference[]> {
    const visible = (await this.foreign()).filter((path) => path.endsWith('.parquet'));
    return visible.map((path) => difference('files', `${path} is not in the manifest, and readers see it`));
  }

  async foreign(): Promise<readonly string[]> {
    const livePaths = new Set(this.snapshot?.files.map(({ path }) => path));
    const paths: string[] = [];
    for (const name of TABLES) {
      const folder = join(this.#paths.root, name);
      const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error) => {
        if (codeOf(error) === 'ENOENT') return [];
        throw error;
      });
      for (const entry of entries.filter((one) => !one.isDirectory())) {
        const path = relative(this.#paths.root, join(entry.parentPath, entry.name)).split(sep).join('/');
        if (!livePaths.has(path)) paths.push(path);
      }
    }
    return paths;
  }

  /** Throws unless each file is the only name of its bytes, in a writable folder of this disk. */
  async tryErase(removed: readonly DataFile[]): Promise<void> {
    const { root, temporary } = this.#paths;
    const { dev } = await stat(temporary);
    for (const { path } of removed) {
      const file = join(root, path);
      await checkOnlyName(file);
      if ((await stat(dirname(file))).dev !== dev) {
        throw configError(
          `${dirname(file)} lies on another disk than ${root}: a file there cannot be replaced in one step. ` +
            'Move the folder itself there. It was not changed.',
        );
      }
      await checkWritable(dirname(file));
    }
  }

  /** A commit replaces files under their names, so that nothing of the old files is left. */
  async erase(): Promise<readonly string[]> {
    return [];
  }

  async close(): Promise<void> {
    try {
      // The temporary files are removed while the folder is locked: later ones belong to the next writer.
      if (!this.#isPending) await rm(this.#paths.temporary, LEFT_OVER);
    } catch (error) {
      throw folderError(error, this.#paths.root);
    } finally {
      await this.#engine.close();
    }
  }
}

/**
 * The steps of a change, in an order in which a reader that globs never sees a key twice: the removals, then each
 * file with rows that move to other dates, without these rows, then the new files.
 */
async function orderedSteps(
  engine: Engine,
  { removed, added, state }: Pick<FileChange, 'removed' | 'added' | 'state'>,
  { root, temporary }: FolderPaths,
): Promise<Move[]> {
  const newPaths = new Set(added.map(({ path }) => path));
  const removals: Move[] = removed.filter(({ path }) => !newPaths.has(path)).map(({ path }) => ({ remove: path }));
  const moveOf = (local: string, to: string): Move => ({ from: relative(root, local).split(sep).join('/'), to });
  const reductions: Move[] = [];
  for (const table of TABLES) {
    const newFiles = added.filter((file) => file.table === table);
    const oldFiles = removed.filter((file) => file.table === table && newPaths.has(file.path));
    const key = table === 'event_logs' ? columnOfSource(state.columns, LOG_ID) : '_key';
    for (const { path, rows } of await filesWithMovedKeys(engine, root, key, { oldFiles, newFiles })) {
      const others = newFiles.filter((file) => file.path !== path).map(({ local }) => local);
      const less = join(temporary, `less-${reductions.length}.part`);
      const query = `SELECT * FROM ${readFiles([join(root, path)])} WHERE ${key} IS NULL OR ${key} NOT IN
        (SELECT ${key} FROM ${readFiles(others)} WHERE ${key} IS NOT NULL)`;
      const writer = { rows: (sql: string) => engine.rows(sql), isLowOnMemory: false, layout: LAYOUT };
      await writeFile(writer, { table, query, rows }, less);
      reductions.push(moveOf(less, path));
    }
  }
  return [...removals, ...reductions, ...added.map(({ local, path }) => moveOf(local, path))];
}

/** The old files of which keys will be in a new file of another path. */
async function filesWithMovedKeys(
  engine: Engine,
  root: string,
  key: string,
  { oldFiles, newFiles }: { readonly oldFiles: readonly DataFile[]; readonly newFiles: readonly NewFile[] },
): Promise<DataFile[]> {
  if (oldFiles.length === 0 || newFiles.length < 2) return [];
  const stored = (file: DataFile) => join(root, file.path);
  const keysIn = (files: readonly string[]) =>
    `(SELECT ${key} AS key, ${FILE} AS file FROM ${readFilesWithPaths(files)})`;
  const pairs = await engine.rows(
    `SELECT DISTINCT before.file AS old, after.file AS new FROM ${keysIn(oldFiles.map(stored))} AS before
    JOIN ${keysIn(newFiles.map(({ local }) => local))} AS after USING (key)`,
  );
  const newPaths = new Map(newFiles.map((file) => [file.local, stored(file)]));
  const givers = new Set(pairs.filter(({ old, new: to }) => newPaths.get(String(to)) !== old).map(({ old }) => old));
  return oldFiles.filter((file) => givers.has(stored(file)));
}

async function hasOwnFiles({ own }: FolderPaths): Promise<boolean> {
  return (await entriesOf(own)).some((name) => name === 'manifest.json' || name === 'journal.json');
}

/** Throws UserError for a folder without a manifest in which somebody else's files have the names of datasets. */
async function refuseForeign(paths: FolderPaths): Promise<void> {
  if (await hasOwnFiles(paths)) return;
  for (const name of TABLES) {
    if ((await entriesOf(join(paths.root, name))).length === 0) continue;
    throw configError(
      `${join(paths.root, name)} holds files that this program did not write: give another folder, or move them away.`,
      { where: { file: paths.root } },
    );
  }
}

async function entriesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw folderError(error, folder);
  }
}
