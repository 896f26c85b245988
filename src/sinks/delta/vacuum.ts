import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { plainCount } from '../../base/quantities.ts';
import { isDraft, isOwnFile } from './files/names.ts';
import { expiredRunFiles } from './history.ts';
import type { Lake } from './lake.ts';
import { LOG_FOLDER } from './log/paths.ts';
import type { Table } from './table.ts';

const PROBE = /^_dfinery\/probe\/[0-9a-f-]{36}(\/trial)?$/;

/** True for what a run that ended properly has removed. */
const isTemporary = (path: string): boolean => PROBE.test(path) || isDraft(path);

/** A younger file that no commit names may belong to another run that is about to commit it. */
const UNCOMMITTED_MS = 3_600_000;

/**
 * Removes the files that left a table longer than `retentionMs` ago, and those older than that which no commit names
 * (S45, S46). A failure is logged as a warning; the next run tries again.
 */
export async function vacuum(lake: Lake, now: number, retentionMs: number, logger: Logger): Promise<void> {
  const until = { left: now - retentionMs, uncommitted: now - Math.max(retentionMs, UNCOMMITTED_MS) };
  try {
    const paths: string[] = [];
    for (const table of lake.tables.values()) paths.push(...(await expired(lake, table, until)));
    const own: string[] = [];
    for await (const { path, modified } of lake.storage.list('_dfinery')) {
      own.push(path);
      if (isTemporary(path) && modified < until.uncommitted) paths.push(path);
    }
    paths.push(...expiredRunFiles(own));
    if (paths.length === 0) return;
    await lake.storage.remove(paths);
    logger.info('delta.removed', `Removed ${plainCount(paths.length, 'file')} that no reader needs any more.`, {
      files: paths.length,
    });
  } catch (error) {
    const message = `${lake.address}: files that are no longer needed could not be removed; the next run tries again.`;
    logger.warn('delta.rubbish', message, { error: messageOf(error) });
  }
}

async function expired(
  lake: Lake,
  table: Table,
  until: { readonly left: number; readonly uncommitted: number },
): Promise<string[]> {
  const gone = table.tombstones();
  const found: string[] = [];
  for await (const { path: full, modified } of lake.storage.list(table.name)) {
    const path = full.slice(table.name.length + 1);
    if (isDraft(full) && modified < until.uncommitted) found.push(full);
    if (path.startsWith(`${LOG_FOLDER}/`) || table.has(path)) continue;
    const since = gone.get(path);
    const isOver = since === undefined ? isOwnFile(path) && modified < until.uncommitted : since < until.left;
    if (isOver) found.push(full);
  }
  return found;
}
