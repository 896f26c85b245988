import { randomUUID } from 'node:crypto';
import { existsSync, realpathSync, rmSync, statSync } from 'node:fs';
import { chmod } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { configFailure, Failure, internalError, messageOf } from '../../base/errors.ts';
import { moveFile } from '../../fs/atomic-file.ts';
import { diskFailure } from '../../fs/disk-failure.ts';
import { literal } from '../../types/sql.ts';
import { secondNameFailure } from '../files/failures.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { SMALL_BLOCKS } from '../sql/engine/new-file.ts';
import {
  Catalog,
  type CatalogOptions,
  createOwnTables,
  IDENTITY,
  identityOf,
  identityRow,
  insertRows,
  PERMISSIONS,
  readState,
} from './catalog.ts';

const UNFINISHED = '.publishing';
/** Rows of `_dfinery_state`: what a catalog is known by, its copies, and in a copy which catalog it is of. */
const COPY = 'copy.';
const COPY_OF = 'copy_of';

/** True for a row of `_dfinery_state` that belongs to the file, not to the state of the export. */
export const isOfFile = (name: string): boolean => name === IDENTITY || name === COPY_OF || name.startsWith(COPY);

/** Throws a configuration failure for a copy for readers: it must not be loaded. */
export function refuseCopy(state: ReadonlyMap<string, string>, file: string): void {
  if (!state.has(COPY_OF)) return;
  throw configFailure(`${file} is a copy for readers: give the catalog that it was published from.`);
}

/** Throws a configuration failure for a place where no copy of a catalog may be put: anything but a copy of it. */
export async function checkCopy(copy: string, catalog: Catalog, options: CatalogOptions): Promise<string> {
  const given = resolve(copy);
  if (!existsSync(dirname(given))) throw configFailure(`The folder of --publish ${copy} does not exist.`);
  if (!existsSync(given)) return given;
  const path = realpathSync(given);
  const { nlink } = statSync(path);
  if (!statSync(path).isFile()) throw configFailure(`--publish ${copy} is no file.`);
  if (catalog.exists && path === realpathSync(catalog.file)) {
    throw configFailure(`--publish ${copy} is the catalog that is loaded: give another path.`);
  }
  if (nlink > 1) throw secondNameFailure(path, nlink);
  const identity = catalog.exists ? identityOf(await catalog.readState(), catalog.file) : undefined;
  const of = (await new Catalog(path, options).readState().catch(() => new Map<string, string>())).get(COPY_OF);
  if (of !== undefined && of === identity) return path;
  throw configFailure(
    `--publish ${copy} exists and is not a copy of ${catalog.file}: it was not changed. Give another path.`,
  );
}

/**
 * Puts a copy of the catalog beside `copy` and renames it into place: who has the former copy open keeps it. The catalog
 * remembers the copy first, so that a purge knows of it whatever happens. Throws Failure.
 */
export async function publish(copy: string, catalog: Catalog, options: CatalogOptions): Promise<void> {
  const path = await checkCopy(copy, catalog, options);
  const draft = join(dirname(path), `.${basename(path)}${UNFINISHED}`);
  try {
    await catalog.settled(async (engine) => {
      const identity = await remember(engine, path, new Date(options.clock.now()).toISOString());
      removeDraft(draft);
      await engine.run(`ATTACH ${literal(draft)} AS published (${SMALL_BLOCKS})`);
      await engine.run('COPY FROM DATABASE target TO published');
      await engine.run(
        `DELETE FROM published._dfinery_state WHERE name = ${literal(IDENTITY)} OR starts_with(name, ${literal(COPY)})`,
      );
      await engine.run(`INSERT INTO published._dfinery_state VALUES (1, ${literal(COPY_OF)}, ${literal(identity)})`);
      await engine.run('DETACH published');
    });
    await chmod(draft, statSync(existsSync(path) ? path : catalog.file).mode & PERMISSIONS);
    const [original, copied] = [await catalog.read(), await new Catalog(draft, options).read()];
    if (copied === undefined || original === undefined || copied.snapshots.length === 0) {
      throw internalError(`${path}: the copy of ${catalog.file} is not whole, and was not published.`);
    }
    await moveFile(draft, path);
  } catch (error) {
    throw diskFailure(error, { what: `the copy for readers ${path}`, path, consequence: 'the former copy stays' });
  } finally {
    removeDraft(draft);
  }
}

function removeDraft(draft: string): void {
  for (const left of [draft, `${draft}.wal`]) rmSync(left, { force: true });
}

/** Notes a copy; gives the identity of the catalog, a new one, without copies, if it is a plain copy of another. */
async function remember(engine: Engine, path: string, at: string): Promise<string> {
  return engine.transaction(async () => {
    await createOwnTables(engine);
    const known = identityOf(await readState(engine), engine.file);
    const identity = known ?? randomUUID();
    if (known === undefined) {
      await engine.run(
        `DELETE FROM _dfinery_state WHERE name = ${literal(IDENTITY)} OR starts_with(name, ${literal(COPY)})`,
      );
      await insertRows(engine, '_dfinery_state', [identityRow(identity, engine.file)]);
    }
    await engine.run('DELETE FROM _dfinery_state WHERE name = $1', [COPY + path]);
    await insertRows(engine, '_dfinery_state', [[1, COPY + path, JSON.stringify(at)]]);
    return identity;
  });
}

/**
 * Publishes every copy of a catalog again: after a purge no copy may hold the removed rows. Sentences about those that still
 * may: one that is not there stays on the list, until it is among `forgotten`.
 */
export async function republish(
  catalog: Catalog,
  options: CatalogOptions,
  forgotten: readonly string[],
): Promise<string[]> {
  const dropped = new Set(forgotten.map((path) => resolve(path)));
  const state = await catalog.readState();
  const isOriginal = identityOf(state, catalog.file) !== undefined;
  const copies = isOriginal
    ? [...state.keys()].filter((name) => name.startsWith(COPY)).map((name) => name.slice(COPY.length))
    : [];
  const unreached: string[] = [];
  for (const path of copies) {
    if (dropped.has(path) && existsSync(path)) {
      unreached.push(`--forget-copy ${path} is still there, and names the people's files: remove it first.`);
      continue;
    }
    if (dropped.has(path)) {
      await catalog.write((engine) => engine.run('DELETE FROM _dfinery_state WHERE name = $1', [COPY + path]));
      continue;
    }
    if (!existsSync(path)) {
      unreached.push(
        `${catalog.file} is purged, but its copy for readers ${path} is not there: if it was moved, or lies on a share that is not mounted, it still names the people's files. Bring it back, or take it off the list with --forget-copy.`,
      );
      continue;
    }
    try {
      await publish(path, catalog, options);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      unreached.push(`${catalog.file} is purged, but its copy for readers ${path} is not: ${messageOf(error)}`);
    }
  }
  return unreached;
}
