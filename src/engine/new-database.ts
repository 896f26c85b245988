import { literal } from '../cells/types/sql.ts';
import { removeTemporaries } from '../fs/atomic-file.ts';
import { type CopiedFormat, identityOf, moveIdentity } from '../targets/copies/mark.ts';
import { copyOwner, REWRITING, removeDatabase } from './session/database-file.ts';
import type { Engine } from './session/engine.ts';

/** The new file that is to replace an open one, as attached to it. */
export const NEW_DATABASE = 'new_database';

/**
 * Makes a new file of a database beside the open one; `fill` copies what is kept into it, as `NEW_DATABASE`. It is
 * removed unless `then` renames it into place. Throws what they throw, or UserError.
 */
export async function withNewDatabase<F, T>(
  format: CopiedFormat,
  engine: Engine,
  fill: () => Promise<F>,
  then: (path: string, filled: F) => Promise<T>,
): Promise<T> {
  const { file } = engine;
  const path = `${file}${REWRITING}`;
  const former = identityOf(file);
  removeDatabase(path);
  // A process that was about to rename such a file held the lock of this one, and died.
  await removeTemporaries(file, 0, 0);
  try {
    await engine.run('SET preserve_insertion_order = true');
    await engine.run(`ATTACH ${literal(path)} AS ${NEW_DATABASE} (${await format.newFile(engine)})`);
    copyOwner(file, path);
    const filled = await fill();
    await moveIdentity(format, engine, { from: former, to: identityOf(path), database: NEW_DATABASE });
    await engine.run(`DETACH ${NEW_DATABASE}`);
    return await then(path, filled);
  } finally {
    // Once the new file has replaced the former one, a file at this path belongs to the next process, which holds the
    // new file's lock.
    if (identityOf(file) === former) removeDatabase(path);
  }
}
