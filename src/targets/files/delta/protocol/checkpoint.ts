import { rm, writeFile } from 'node:fs/promises';
import { DAY_MS, HOUR_MS } from '../../../../base/clock.ts';
import { configError } from '../../../../base/errors.ts';
import { literal, pathLiteral } from '../../../../base/sql.ts';
import { isEngineFailure } from '../../../../engine/session/engine-errors.ts';
import { looksTemporary } from '../../../../fs/atomic-file.ts';
import { PRIVATE_FILE_MODE } from '../../../../fs/permissions.ts';
import { listAll, type Storage, type StoredObject } from '../../../../storage/storage.ts';
import type { TableName } from '../../../../table/tables.ts';
import type { OpenPlace } from '../../format.ts';
import { type Action, parseAction } from './actions.ts';
import { checkpointPath, lastCheckpointPath, logFileOf, logFolder } from './paths.ts';
import type { Snapshot } from './snapshot.ts';

/** Number of commits from one checkpoint to the next: a sync reads the entries after it, each by a request. */
const CHECKPOINT_EVERY = 5;
/** Time that entries before a checkpoint stay (ms). Versions before the newest checkpoint cannot be opened then. */
const LOG_RETENTION_MS = 30 * DAY_MS;

/** The columns of a checkpoint, as the protocol's V1 checkpoint has them. */
const CHECKPOINT_COLUMNS: Readonly<Record<string, string>> = {
  add:
    'STRUCT("path" VARCHAR, "partitionValues" MAP(VARCHAR, VARCHAR), "size" BIGINT, "modificationTime" BIGINT, ' +
    '"dataChange" BOOLEAN, "stats" VARCHAR, "tags" MAP(VARCHAR, VARCHAR))',
  remove:
    'STRUCT("path" VARCHAR, "deletionTimestamp" BIGINT, "dataChange" BOOLEAN, "extendedFileMetadata" BOOLEAN, ' +
    '"partitionValues" MAP(VARCHAR, VARCHAR), "size" BIGINT, "tags" MAP(VARCHAR, VARCHAR))',
  metaData:
    'STRUCT("id" VARCHAR, "name" VARCHAR, "description" VARCHAR, "format" STRUCT("provider" VARCHAR, "options" ' +
    'MAP(VARCHAR, VARCHAR)), "schemaString" VARCHAR, "partitionColumns" VARCHAR[], "configuration" MAP(VARCHAR, ' +
    'VARCHAR), "createdTime" BIGINT)',
  protocol:
    'STRUCT("minReaderVersion" INTEGER, "minWriterVersion" INTEGER, "readerFeatures" VARCHAR[], "writerFeatures" VARCHAR[])',
  domainMetadata: 'STRUCT("domain" VARCHAR, "configuration" VARCHAR, "removed" BOOLEAN)',
};

/** The actions of a checkpoint. Throws a configuration failure for one that is damaged. */
export async function readCheckpoint(
  { storage, localFiles }: OpenPlace,
  tableName: TableName,
  logVersion: number,
): Promise<Action[]> {
  const path = checkpointPath(tableName, logVersion);
  const subject = `${storage.address}/${path}`;
  const localPath = await storage.localFile(path, localFiles.newLocalPath());
  const from = `read_parquet(${pathLiteral(localPath)})`;
  const query = `SELECT CAST(to_json(line) AS VARCHAR) AS action FROM ${from} AS line`;
  const rows = await localFiles.engine.rows(query).catch((cause) => {
    if (!isEngineFailure(cause, 'parquetDamaged')) throw cause;
    throw configError(
      `${subject} is damaged: restore it, or move it away. The entries of the log say the same, unless some are gone.`,
      { cause },
    );
  });
  return rows.flatMap(({ action }) => parseAction(String(action), tableName, subject) ?? []);
}

/** Renews the checkpoint of a table after a number of commits. They are valid without it: a failure is a warning. */
export async function renewCheckpointIfDue(place: OpenPlace, snapshot: Snapshot): Promise<void> {
  const { tableName, logVersion } = snapshot;
  if (logVersion === 0 || logVersion % CHECKPOINT_EVERY !== 0) return;
  const { storage, options, retentionMs } = place;
  const now = options.clock.now();
  try {
    await writeCheckpoint(place, snapshot, now - retentionMs);
    await removeOldLogFiles(storage, snapshot, now);
  } catch (error) {
    const message = `${storage.address}/${tableName}: no checkpoint of version ${logVersion} could be written; the next run tries the next.`;
    options.logger.warn('delta.checkpoint', message, { version: logVersion, error: String(error) });
  }
}

/** Removes older checkpoints, old entries, and what killed commits left beside them. */
async function removeOldLogFiles(storage: Storage, { tableName, logVersion }: Snapshot, now: number): Promise<void> {
  const isOld = ({ path, modified }: StoredObject) => {
    const file = logFileOf(path);
    // A younger one may be that of a commit under way.
    if (file === undefined) return looksTemporary(path) && modified < now - HOUR_MS;
    if (file.logVersion >= logVersion) return false;
    // Each checkpoint has all days: this one stays, and the one of `CHECKPOINT_EVERY` commits before.
    return file.isEntry ? modified < now - LOG_RETENTION_MS : file.logVersion < logVersion - CHECKPOINT_EVERY;
  };
  const oldFiles = (await listAll(storage, logFolder(tableName))).filter(isOld);
  await storage.remove(oldFiles.map(({ path }) => path));
}

/** Stores a checkpoint, with the tombstones of `tombstonesSince` (ms) and later, then the pointer to it. */
export async function writeCheckpoint(
  { storage, localFiles }: OpenPlace,
  snapshot: Snapshot,
  tombstonesSince: number,
): Promise<void> {
  const { tableName, logVersion } = snapshot;
  const [jsonPath, parquetPath] = [localFiles.newLocalPath(), localFiles.newLocalPath()];
  const lines = Array.from(snapshot.actions(tombstonesSince), (action) => JSON.stringify(action));
  await writeFile(jsonPath, lines.join('\n'), { flag: 'wx', mode: PRIVATE_FILE_MODE });
  const columns = Object.entries(CHECKPOINT_COLUMNS).map(([name, type]) => `${literal(name)}: ${literal(type)}`);
  await localFiles.engine.run(
    `COPY (SELECT * FROM read_json(${pathLiteral(jsonPath)}, format = 'newline_delimited',
    columns = {${columns.join(', ')}})) TO ${literal(parquetPath)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
  );
  await rm(jsonPath);
  await storage.moveIn(parquetPath, checkpointPath(tableName, logVersion));
  await storage.write(lastCheckpointPath(tableName), JSON.stringify({ version: logVersion, size: lines.length }));
}
