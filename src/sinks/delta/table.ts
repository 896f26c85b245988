import { randomUUID } from 'node:crypto';
import { configError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { VERSION } from '../../base/version.ts';
import type { TableName } from '../../table/columns.ts';
import type { DataFile } from '../files/log.ts';
import { PARTITION } from '../files/parquet-file.ts';
import { DEFAULT_RETENTION_MS, isDraft, isOwnFile, pathInTable } from '../files/stored-files.ts';
import type { Stored } from '../storage/storage.ts';
import { dataFileOf } from './data-file.ts';
import { type LogPlace, writeCheckpoint } from './protocol/checkpoint.ts';
import {
  type Action,
  type Add,
  beforeVersion,
  entryPath,
  LAST_CHECKPOINT,
  LOG_FOLDER,
  logFileOf,
  type MetaData,
} from './protocol/entry.ts';
import { type LogSnapshot, readSnapshot } from './protocol/snapshot.ts';
import { checkProtocol, type DeltaField, fieldsIn, protocolOf, schemaString, supports } from './schema.ts';
import { type Domains, isReceiptDomain, type TableInfo, tableInfoOf } from './state.ts';

/** The application id of this program in the log's `txn` actions. */
const APP_ID = 'dfinery-elt';
/** Number of commits from one checkpoint to the next (S45). */
const CHECKPOINT_EVERY = 100;
const RETENTION = 'delta.deletedFileRetentionDuration';
const SECONDS = /^interval (\d{1,9}) seconds$/;

/** The facts about a commit that a table's history shows. */
export interface CommitInfo {
  readonly operation: 'WRITE' | 'OPTIMIZE' | 'DELETE';
  /** Number of the last window in the table after the commit. */
  readonly window: number;
  /** Time of the commit (ms since 1970). */
  readonly now: number;
}

/** The columns and properties that a table should have. */
interface Shape {
  readonly fields: readonly DeltaField[];
  readonly asInstants: boolean;
  /** Time that files which left the table stay (ms). */
  readonly retentionMs: number;
}

/** One Delta table, at the latest version that this process has read. */
export class DeltaTable {
  readonly name: TableName;
  readonly #place: LogPlace;
  readonly #snapshot: LogSnapshot;
  readonly #logger: Logger;
  /** Data files by log entry: entries never change, so that each is parsed once. */
  readonly #parsed = new WeakMap<Add, DataFile>();

  private constructor(name: TableName, place: LogPlace, snapshot: LogSnapshot, logger: Logger) {
    this.name = name;
    this.#place = place;
    this.#snapshot = snapshot;
    this.#logger = logger;
  }

  /**
   * Reads a table's log. Throws UserError for a log that is damaged, not this program's, or changed in ways that it
   * does not know.
   */
  static async open(name: TableName, place: LogPlace, logger: Logger): Promise<DeltaTable> {
    const snapshot = await readSnapshot(place);
    const table = new DeltaTable(name, place, snapshot, logger);
    if (snapshot.version < 0) await table.#refuseForeignFiles();
    else table.#check();
    return table;
  }

  /** The address of the table, for messages. */
  get address(): string {
    return `${this.#place.storage.address}/${this.name}`;
  }

  get exists(): boolean {
    return this.#snapshot.version >= 0;
  }

  get version(): number {
    return this.#snapshot.version;
  }

  get domains(): Domains {
    return this.#snapshot.domains;
  }

  get info(): TableInfo | undefined {
    return tableInfoOf(this.domains, this.address);
  }

  /** Time that files which left the table stay, as its last load configured (ms). */
  get retentionMs(): number {
    const seconds = SECONDS.exec(this.#snapshot.metaData?.configuration[RETENTION] ?? '')?.[1];
    return seconds === undefined ? DEFAULT_RETENTION_MS : Number(seconds) * 1_000;
  }

  /** The columns of the table in its log. */
  get fields(): readonly DeltaField[] {
    return fieldsIn(this.#snapshot.metaData?.schemaString, this.address);
  }

  /** The files of the table, in the order of their paths. */
  files(): DataFile[] {
    const files = [...this.#snapshot.files].map(([path, add]) => {
      const file = this.#parsed.get(add) ?? dataFileOf(this.name, path, add, this.address);
      this.#parsed.set(add, file);
      return file;
    });
    return files.sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /** The log's entry of a live file, by its path from the root. */
  addOf(path: string): Add {
    const add = this.#snapshot.files.get(pathInTable(this.name, path));
    if (add === undefined) throw new RangeError(`${path} is no live file`);
    return add;
  }

  /** True for a path, from the root, of a live file or of the log. */
  owns(path: string): boolean {
    const own = pathInTable(this.name, path);
    return own.startsWith(`${LOG_FOLDER}/`) || this.#snapshot.files.has(own);
  }

  /** When a file, by its path from the root, left the table (ms); undefined if it never did. */
  leftAt(path: string): number | undefined {
    const found = this.#snapshot.tombstones.get(pathInTable(this.name, path));
    return found === undefined ? undefined : (found.deletionTimestamp ?? 0);
  }

  /** Time at which the latest version was stored, by the clock of the store (ms since 1970). */
  async committedAt(): Promise<number> {
    for await (const { isEntry, version, modified } of this.#logFrom(this.version)) {
      if (isEntry && version === this.version) return modified;
    }
    return 0;
  }

  /** The actions that make the table, or change its columns; empty if nothing needs to change. */
  shapeActions(shape: Shape, now: number): Action[] {
    const wanted = schemaString(shape.fields);
    const { metaData: before, protocol } = this.#snapshot;
    const retention = `interval ${Math.ceil(shape.retentionMs / 1_000)} seconds`;
    const upgrade: Action[] = supports(protocol, shape.asInstants) ? [] : [{ protocol: protocolOf(shape.asInstants) }];
    if (before?.schemaString === wanted && before.configuration[RETENTION] === retention) return upgrade;
    const metaData: MetaData = {
      id: before?.id ?? randomUUID(),
      name: this.name,
      format: { provider: 'parquet', options: {} },
      schemaString: wanted,
      partitionColumns: [PARTITION],
      createdTime: before?.createdTime ?? Math.floor(now),
      configuration: { ...before?.configuration, [RETENTION]: retention },
    };
    return [...upgrade, { metaData }];
  }

  /**
   * Commits the next version of the table; returns false and changes nothing if somebody else committed it first. An
   * entry with exactly these bytes is this process's own, whose answer was lost: it names a transaction that nobody
   * else has. An entry that no reader reads, since a purge has removed the entries before it, is removed again.
   */
  async commit(actions: readonly Action[], { operation, window, now }: CommitInfo): Promise<boolean> {
    const { storage } = this.#place;
    const version = this.version + 1;
    const commitInfo = {
      timestamp: Math.floor(now),
      operation,
      operationParameters: { window: String(window) },
      readVersion: this.version,
      isBlindAppend: false,
      engineInfo: `dfinery-elt/${VERSION}`,
      txnId: randomUUID(),
    };
    const txn = { appId: APP_ID, version: window, lastUpdated: Math.floor(now) };
    const all: Action[] = [{ commitInfo }, ...actions, { txn }];
    const path = `${this.name}/${entryPath(version)}`;
    const text = `${all.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const isOurs = (await storage.create(path, text)) || (await storage.read(path))?.toString('utf8') === text;
    if (!isOurs) return false;
    if (await this.#isBehind(version, all)) {
      await storage.erase([path]);
      return false;
    }
    this.#snapshot.apply(version, all);
    return true;
  }

  /** False if somebody has committed a later version. */
  async isLatest(): Promise<boolean> {
    for await (const _ of this.#logFrom(this.version + 1)) return false;
    return true;
  }

  /** Writes a checkpoint every hundred versions. A failure is only logged: the commits are valid without it. */
  async checkpoint(now: number): Promise<void> {
    const { version } = this;
    if (version === 0 || version % CHECKPOINT_EVERY !== 0) return;
    await this.#writeCheckpoint(now).catch((error) => {
      const message = `${this.address}: no checkpoint of version ${version} could be written; the next run tries the next.`;
      this.#logger.warn('delta.checkpoint', message, { version, error: String(error) });
    });
  }

  /**
   * Writes a checkpoint and removes all earlier files of the log: their statistics name values of rows that a purge
   * removed (S44). Throws UserError.
   */
  async eraseHistory(now: number): Promise<void> {
    if (this.version < 1) return;
    await this.#writeCheckpoint(now);
    const kept = [entryPath(this.version), LAST_CHECKPOINT].map((path) => `${this.name}/${path}`);
    const isKept = ({ path }: Pick<Stored, 'path'>) => {
      const found = logFileOf(pathInTable(this.name, path));
      return kept.includes(path) || (found !== undefined && found.version >= this.version);
    };
    await this.#place.storage.eraseAllBut(`${this.name}/${LOG_FOLDER}`, isKept, now);
  }

  /** Writes a checkpoint without the tombstones that are older than the retention. */
  #writeCheckpoint(now: number): Promise<void> {
    return writeCheckpoint(this.#place, this.version, this.#snapshot.actions(now - this.retentionMs));
  }

  /**
   * True for a version that was created after a purge had removed the entries before it. It comes before a checkpoint
   * that lacks it, so that no reader reads it. A purge that came after the version has it in its checkpoint.
   */
  async #isBehind(version: number, actions: readonly Action[]): Promise<boolean> {
    if (version === 0) return false;
    for await (const before of this.#logFrom(version - 1)) if (before.version === version - 1) return false;
    const latest = await readSnapshot(this.#place);
    return !actions.some((action) => {
      if ('domainMetadata' in action) {
        const { domain, configuration } = action.domainMetadata;
        return isReceiptDomain(domain) && latest.domains.get(domain) === configuration;
      }
      return 'add' in action && (latest.files.has(action.add.path) || latest.tombstones.has(action.add.path));
    });
  }

  /** Yields the log's entries and checkpoints from a version on. */
  async *#logFrom(from: number) {
    const { storage } = this.#place;
    for await (const stored of storage.list(`${this.name}/${LOG_FOLDER}`, `${this.name}/${beforeVersion(from)}`)) {
      const found = logFileOf(pathInTable(this.name, stored.path));
      if (found !== undefined) yield { ...found, modified: stored.modified };
    }
  }

  #check(): void {
    const { protocol, metaData } = this.#snapshot;
    if (protocol === undefined || metaData === undefined) {
      throw configError(`${this.address} has a log without protocol or metadata: restore it from a copy.`);
    }
    if (this.info?.table !== this.name) {
      throw configError(`${this.address} is a Delta table that this program did not make: give another place.`);
    }
    checkProtocol(protocol, this.address);
    if (metaData.partitionColumns.length === 1 && metaData.partitionColumns[0] === PARTITION) return;
    throw configError(
      `${this.address} is no longer partitioned by ${PARTITION}: somebody else changed it. Nothing was done.`,
    );
  }

  /**
   * Throws UserError if the folder of a table without a log has files of somebody else; those of a run that died before
   * its first commit are accepted.
   */
  async #refuseForeignFiles(): Promise<void> {
    for await (const { path } of this.#place.storage.list(this.name)) {
      if (isOwnFile(pathInTable(this.name, path)) || isDraft(path)) continue;
      throw configError(
        `${this.address} holds files that this program did not write: give another place, or move them away.`,
      );
    }
  }
}
