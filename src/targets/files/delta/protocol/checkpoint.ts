import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { literal, pathLiteral } from '../../../../base/sql.ts';
import { PRIVATE_FILE_MODE } from '../../../../fs/permissions.ts';
import type { TableName } from '../../../../table/tables.ts';
import type { OpenPlace } from '../../format.ts';
import { type Action, parseAction } from './actions.ts';
import { checkpointPath, lastCheckpointPath } from './paths.ts';
import type { Snapshot } from './snapshot.ts';

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
  { storage, engine, runFolder }: OpenPlace,
  table: TableName,
  logVersion: number,
): Promise<Action[]> {
  const path = checkpointPath(table, logVersion);
  const where = `${storage.address}/${path}`;
  const localPath = await storage.localFile(path, join(runFolder.path, randomUUID()));
  const from = `read_parquet(${pathLiteral(localPath)})`;
  const rows = await engine.rows(`SELECT CAST(to_json(line) AS VARCHAR) AS action FROM ${from} AS line`);
  return rows.flatMap(({ action }) => parseAction(String(action), table, where) ?? []);
}

/** Stores a checkpoint, with the tombstones younger than `since` (ms), then the pointer to it. */
export async function writeCheckpoint(
  { storage, engine, runFolder }: OpenPlace,
  snapshot: Snapshot,
  since: number,
): Promise<void> {
  const { table, logVersion } = snapshot;
  const [jsonPath, parquetPath] = [join(runFolder.path, randomUUID()), join(runFolder.path, randomUUID())];
  const lines = Array.from(snapshot.actions(since), (action) => JSON.stringify(action));
  await writeFile(jsonPath, lines.join('\n'), { flag: 'wx', mode: PRIVATE_FILE_MODE });
  const columns = Object.entries(CHECKPOINT_COLUMNS).map(([name, type]) => `${literal(name)}: ${literal(type)}`);
  await engine.run(
    `COPY (SELECT * FROM read_json(${pathLiteral(jsonPath)}, format = 'newline_delimited',
    columns = {${columns.join(', ')}})) TO ${literal(parquetPath)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
  );
  await rm(jsonPath);
  await storage.moveIn(parquetPath, checkpointPath(table, logVersion));
  await storage.write(lastCheckpointPath(table), JSON.stringify({ version: logVersion, size: lines.length }));
}
