import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { isOwnFile } from './files/names.ts';
import { spentRunFiles } from './history.ts';
import type { Lake } from './lake.ts';
import { LOG_FOLDER } from './log/paths.ts';
import type { Table } from './table.ts';

/** Files that a dead run made under names of their own, which no reader looks at. */
const WAITING = /^_dfinery\/probe\/[0-9a-f-]{36}(\/trial)?$|(^|\/)\.[^/]+\.tmp$/;

/** A younger file that no commit names may be another run's, which is about to commit it. */
const UNDER_WAY_MS = 3_600_000;

/**
 * Removes the files that left a table longer than `retentionMs` ago, and those older than that which no commit names
 * (S45, S46). What cannot be removed is told, and tried again by the next run.
 */
export async function removeRubbish(lake: Lake, now: number, retentionMs: number, logger: Logger): Promise<void> {
  const until = { left: now - retentionMs, rubbish: now - Math.max(retentionMs, UNDER_WAY_MS) };
  try {
    const paths: string[] = [];
    for (const table of lake.tables.values()) paths.push(...(await expired(lake, table, until)));
    const own: string[] = [];
    for await (const { path, modified } of lake.storage.list('_dfinery')) {
      own.push(path);
      if (WAITING.test(path) && modified < until.rubbish) paths.push(path);
    }
    paths.push(...spentRunFiles(own));
    if (paths.length === 0) return;
    await lake.storage.remove(paths);
    logger.info('delta.removed', `${paths.length} files that no reader needs any more are removed.`, {
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
  until: { readonly left: number; readonly rubbish: number },
): Promise<string[]> {
  const gone = table.tombstones();
  const found: string[] = [];
  for await (const { path: full, modified } of lake.storage.list(table.name)) {
    const path = full.slice(table.name.length + 1);
    if (WAITING.test(full) && modified < until.rubbish) found.push(full);
    if (path.startsWith(`${LOG_FOLDER}/`) || table.has(path)) continue;
    const since = gone.get(path);
    const isOver = since === undefined ? isOwnFile(path) && modified < until.rubbish : since < until.left;
    if (isOver) found.push(full);
  }
  return found;
}
