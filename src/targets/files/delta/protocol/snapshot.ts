import { createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import pLimit from 'p-limit';
import { objectIn } from '../../../../base/json.ts';
import { literal, pathLiteral } from '../../../../cells/types/sql.ts';
import type { Engine } from '../../../../engine/session/engine.ts';
import { OWNER_FILE } from '../../../../fs/atomic-file.ts';
import type { Storage } from '../../../../storage/storage.ts';
import type { Table } from '../../../../table/tables.ts';
import { damagedError, parseJson } from '../../stored.ts';
import {
  type Action,
  type Add,
  beforeVersion,
  checkpointPath,
  entryPath,
  LAST_CHECKPOINT,
  LOG_FOLDER,
  logFileOf,
  type MetaData,
  type Protocol,
  parseAction,
  parseEntry,
  type Remove,
  type Txn,
} from './entry.ts';

/** Number of entries that are fetched at the same time. */
const READ_CONCURRENCY = 16;

/** The log of a table in its store, with the means to work on it. */
export interface LogFolder {
  readonly storage: Storage;
  readonly engine: Engine;
  /** Local folder for copies and for files that are not stored yet. */
  readonly folder: string;
  /** The folder of the table, from the root of the storage. */
  readonly table: Table['name'];
}

/** A table at one version: the state that results from the log. */
export class LogSnapshot {
  /** The version; −1 before the first commit. */
  version = -1;
  protocol: Protocol | undefined;
  metaData: MetaData | undefined;
  /** Live files by their path from the table's folder. */
  readonly files = new Map<string, Add>();
  /** Files that left the table, by path, until their retention ends. */
  readonly tombstones = new Map<string, Remove>();
  readonly txns = new Map<string, Txn>();
  readonly domains = new Map<string, string>();

  apply(version: number, actions: readonly Action[]): void {
    for (const action of actions) {
      if ('add' in action) {
        const { path } = action.add;
        this.files.set(path, action.add);
        this.tombstones.delete(path);
      } else if ('remove' in action) {
        const { path } = action.remove;
        this.files.delete(path);
        this.tombstones.set(path, action.remove);
      } else if ('domainMetadata' in action) {
        const { domain, configuration, removed } = action.domainMetadata;
        if (removed) this.domains.delete(domain);
        else this.domains.set(domain, configuration);
      } else if ('txn' in action) this.txns.set(action.txn.appId, action.txn);
      else if ('metaData' in action) this.metaData = action.metaData;
      else if ('protocol' in action) this.protocol = action.protocol;
    }
    this.version = version;
  }

  /** Yields the actions that a checkpoint of this version must hold, with the tombstones younger than `since` (ms). */
  *actions(since: number): Generator<Action, void, undefined> {
    if (this.protocol !== undefined) yield { protocol: this.protocol };
    if (this.metaData !== undefined) yield { metaData: this.metaData };
    for (const txn of this.txns.values()) yield { txn };
    for (const [domain, configuration] of this.domains) {
      yield { domainMetadata: { domain, configuration, removed: false } };
    }
    for (const add of this.files.values()) yield { add };
    for (const remove of this.tombstones.values()) {
      if ((remove.deletionTimestamp ?? 0) >= since) yield { remove };
    }
  }
}

/**
 * Reads the latest version of a table, only what is new since `before`; version −1 if there is none. Throws UserError for
 * a log that is damaged.
 */
export async function readSnapshot(logFolder: LogFolder, before?: LogSnapshot): Promise<LogSnapshot> {
  if (before !== undefined && before.version >= 0) {
    const { checkpoint, entries } = await listLog(logFolder, before.version + 1);
    if (checkpoint < 0 && entries.length === 0) return before;
    if (entries.every((version, i) => version === before.version + 1 + i) && checkpoint <= (entries.at(-1) ?? 0)) {
      return readEntries(logFolder, before, entries);
    }
  }
  let log = await findLog(logFolder);
  for (;;) {
    try {
      return await logSnapshotOf(logFolder, log);
    } catch (error) {
      const latest = await findLog(logFolder);
      if (latest.checkpoint <= log.checkpoint) throw error;
      // A purge removed a listed file before it was read; the purge's checkpoint has everything.
      log = latest;
    }
  }
}

interface Log {
  /** The version of the latest checkpoint; −1 if there is none. */
  readonly checkpoint: number;
  /** The versions of the entries, in order. */
  readonly entries: readonly number[];
}

async function findLog(logFolder: LogFolder): Promise<Log> {
  const { storage, table } = logFolder;
  // The pointer is only a hint: if it is wrong, the listing takes longer.
  const text = (await storage.read(`${table}/${LAST_CHECKPOINT}`))?.toString('utf8') ?? '';
  const { version } = objectIn(text);
  if (typeof version !== 'number' || !(version > 0)) return listLog(logFolder, 0);
  const found = await listLog(logFolder, version);
  // The pointer may name a missing checkpoint, as in a copy made by hand.
  return found.checkpoint < version ? listLog(logFolder, 0) : found;
}

async function listLog({ storage, table }: LogFolder, since: number): Promise<Log> {
  const entries: number[] = [];
  let checkpoint = -1;
  for await (const { path } of storage.list(`${table}/${LOG_FOLDER}`, `${table}/${beforeVersion(since)}`)) {
    const file = logFileOf(path.slice(table.length + 1));
    if (file?.isEntry === true) entries.push(file.version);
    else if (file !== undefined) checkpoint = Math.max(checkpoint, file.version);
  }
  return { checkpoint, entries };
}

async function logSnapshotOf(logFolder: LogFolder, { checkpoint, entries }: Log): Promise<LogSnapshot> {
  const snapshot = new LogSnapshot();
  const { storage, table } = logFolder;
  if (checkpoint >= 0) snapshot.apply(checkpoint, await readCheckpoint(logFolder, checkpoint));
  const versions = entries.filter((version) => version > checkpoint);
  // Every version from the checkpoint on must be there once: a missing one would be a hole in the data.
  const hole = versions.findIndex((version, i) => version !== checkpoint + 1 + i);
  if (hole >= 0) {
    throw damagedError(`${storage.address}/${table}/${LOG_FOLDER}`, `version ${checkpoint + 1 + hole} is missing`);
  }
  return readEntries(logFolder, snapshot, versions);
}

/** Applies entries to a snapshot, in order. */
async function readEntries({ storage, table }: LogFolder, snapshot: LogSnapshot, versions: readonly number[]) {
  const paths = versions.map((version) => `${table}/${entryPath(version)}`);
  const texts = await pLimit(READ_CONCURRENCY).map(paths, (path) => storage.read(path));
  for (const [i, text] of texts.entries()) {
    const where = `${storage.address}/${paths[i]}`;
    if (text === undefined) throw damagedError(where, 'it is gone');
    snapshot.apply(versions[i], parseEntry(text.toString('utf8'), where));
  }
  return snapshot;
}

/** Maximum size of a JSON value in DuckDB, unless one is longer: the schema of very many columns. */
const USUAL_LINE_BYTES = 16 * 1024 * 1024;

/** The columns of a checkpoint, as the protocol's first kind has them. */
const CHECKPOINT_COLUMNS: Readonly<Record<string, string>> = {
  txn: 'STRUCT("appId" VARCHAR, "version" BIGINT, "lastUpdated" BIGINT)',
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

async function readCheckpoint(logFolder: LogFolder, version: number): Promise<Action[]> {
  const { storage, engine, folder, table } = logFolder;
  const path = `${table}/${checkpointPath(version)}`;
  const where = `${storage.address}/${path}`;
  const copy = join(folder, 'read.checkpoint');
  try {
    const from = `read_parquet(${pathLiteral(await storage.localFile(path, copy))})`;
    const rows = await engine.rows(`SELECT CAST(to_json(line) AS VARCHAR) AS action FROM ${from} AS line`);
    return rows.flatMap(({ action }) => parseAction(parseJson(String(action), where), where));
  } finally {
    await rm(copy, { force: true });
  }
}

export async function writeCheckpoint(logFolder: LogFolder, version: number, actions: Iterable<Action>): Promise<void> {
  const { storage, engine, folder, table } = logFolder;
  const lines = join(folder, 'checkpoint.json');
  const file = join(folder, 'checkpoint.parquet');
  let [count, longest] = [0, 0];
  function* linesOf() {
    for (const action of actions) {
      const line = Buffer.from(`${JSON.stringify(action)}\n`);
      count++;
      longest = Math.max(longest, line.length);
      yield line;
    }
  }
  try {
    await pipeline(linesOf, createWriteStream(lines, { flags: 'wx', mode: OWNER_FILE }));
    const columns = Object.entries(CHECKPOINT_COLUMNS).map(([name, type]) => `${literal(name)}: ${literal(type)}`);
    const size = Math.max(USUAL_LINE_BYTES, longest * 2);
    await engine.run(
      `COPY (SELECT * FROM read_json(${pathLiteral(lines)}, format = 'newline_delimited', maximum_object_size = ${size},
      columns = {${columns.join(', ')}})) TO ${literal(file)} (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)`,
    );
    await storage.putFile(file, `${table}/${checkpointPath(version)}`);
    const pointer = JSON.stringify({ version, size: count });
    await storage.write(`${table}/${LAST_CHECKPOINT}`, pointer);
  } finally {
    for (const path of [lines, file]) await rm(path, { force: true });
  }
}
