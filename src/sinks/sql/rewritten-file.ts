import { removeTemporaries } from '../../fs/atomic-file.ts';
import { literal } from '../../types/sql.ts';
import { type CopiedFormat, identityOf, moveIdentity } from './copies.ts';
import { copyOwner, sweep } from './engine/database-file.ts';
import { type Engine, REWRITING } from './engine/engine.ts';

/**
 * Writes the database of an open file anew, in a file beside it that is removed in the end unless `then` has put it in the former
 * one's place. `how`: of a new file; `fill`: puts what is to be kept into the database `rewritten`. Throws what they throw, or UserError.
 */
export async function withRewritten<F, T>(
  format: CopiedFormat,
  engine: Engine,
  how: string,
  fill: () => Promise<F>,
  then: (path: string, filled: F) => Promise<T>,
): Promise<T> {
  const { file } = engine;
  const path = `${file}${REWRITING}`;
  const former = identityOf(file);
  sweep(path);
  // Whoever was to name one of them had this file's lock, and died.
  await removeTemporaries(file, 0, 0);
  try {
    await engine.run('SET preserve_insertion_order = true');
    await engine.run(`ATTACH ${literal(path)} AS rewritten (${how})`);
    copyOwner(file, path);
    const filled = await fill();
    await moveIdentity(format, engine, { from: former, to: identityOf(path), schema: 'rewritten' });
    await engine.run('DETACH rewritten');
    return await then(path, filled);
  } finally {
    // Once it has taken the place of the file, a file of its name is that of the next process, which has the new file's lock.
    if (identityOf(file) === former) sweep(path);
  }
}
