import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { messageOf, UserError } from '../../base/errors.ts';
import { fileAt, spilledFolders } from '../../engine/session/database-file.ts';
import type { Engine, EngineOptions } from '../../engine/session/engine.ts';
import type { PurgeOptions } from '../people.ts';
import { type CopiedFormat, databaseOf, readMark } from './mark.ts';
import { COPIES_TABLE, publish, removeUnfinishedCopy } from './publish.ts';

/**
 * Publishes every copy of a file again: after a purge no copy may hold the removed rows. Returns a sentence that names
 * every copy which could not be replaced or is not there, and so may still hold them; such a copy stays on the list. A
 * plain copy of a database has no copies. Those of `forgetCopies` that do not exist are taken off the list first.
 */
export async function republish(
  format: CopiedFormat,
  options: EngineOptions & Pick<PurgeOptions, 'forgetCopies'>,
): Promise<string[]> {
  const { forgetCopies = [] } = options;
  const failed: string[] = [];
  /** Replaces a copy; returns a sentence if it may still hold the people. */
  const replace = async (engine: Engine, copy: string): Promise<string[]> => {
    try {
      if (!existsSync(copy)) {
        removeUnfinishedCopy(copy);
        return [
          `${copy} is not there: if it was moved, or lies on a share that is not mounted now, it still holds them.`,
        ];
      }
      await publish(format, engine, copy);
      // A reader may be alive, and nobody who opens the copy may find it locked: so it is not known whose these are.
      const spilled = spilledFolders(copy).join(', ');
      if (spilled === '') return [];
      return [
        `${copy} is published anew, but ${spilled} may hold what a reader of the former one has put there: remove that ` +
          'once nobody reads it.',
      ];
    } catch (error) {
      options.signal?.throwIfAborted();
      return [`${copy} could not be replaced: ${messageOf(error).replace(/\.?$/, '.')}`];
    }
  };
  try {
    await format.withFile(options, async (engine) => {
      if (databaseOf(await readMark(format, engine), engine.file) === undefined) return;
      for (const path of forgetCopies.map((copy) => resolve(copy)).filter((one) => !existsSync(one))) {
        removeUnfinishedCopy(path);
        await engine.run(`DELETE FROM ${COPIES_TABLE} WHERE path = $1`, [path]);
      }
      for (const copy of await copiesIn(engine)) failed.push(...(await replace(engine, copy)));
    });
  } catch (error) {
    if (error instanceof UserError) return [error.message];
    throw error;
  }
  if (failed.length === 0) return [];
  return [
    `${options.file} is purged, but its copies for readers may still hold the people. ${failed.join(' ')} Run the purge again ` +
      'when they can be replaced; for one that is gone for good, with --forget-copy FILE.',
  ];
}

/** The copies of the database of which an open file is, or was, a plain copy. */
export async function copiesOfOriginal(format: CopiedFormat, engine: Engine): Promise<string[]> {
  const former = await copiesIn(engine, 'published_at IS NULL');
  if (databaseOf(await readMark(format, engine), engine.file) !== undefined) return former;
  return [...former, ...(await copiesIn(engine)).filter((path) => existsSync(path))];
}

/** The copies on the list of an open file, without paths that lead to this file by now: there is no copy at them. */
export async function copiesIn(engine: Engine, where = 'published_at IS NOT NULL'): Promise<string[]> {
  const rows = await engine.rows(`SELECT path FROM ${COPIES_TABLE} WHERE ${where} ORDER BY path`);
  const paths = rows.map(({ path }) => String(path));
  return paths.filter((path) => !existsSync(path) || fileAt(path) !== fileAt(engine.file));
}
