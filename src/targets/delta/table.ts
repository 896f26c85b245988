import { randomUUID } from 'node:crypto';
import { configError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import { VERSION } from '../../base/version.ts';
import type { TableName } from '../../table/columns.ts';
import { lastWindowNumber } from '../../table/receipts.ts';
import { byPath, type DataFile } from '../files/data-file.ts';
import { PARTITION_COLUMN } from '../files/parquet-file.ts';
import { DEFAULT_RETENTION_MS, pathInTable, refuseForeignFiles } from '../files/stored-files.ts';
import type { FileChange } from '../files/table-log.ts';
import { Versions } from '../files/versions.ts';
import { dataFileOf } from './data-file.ts';
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
import { type LogFolder, type LogSnapshot, readSnapshot, writeCheckpoint } from './protocol/snapshot.ts';
import { checkProtocol, type DeltaField, fieldsIn, protocolOf, schemaString, supports } from './schema.ts';
import { type Domains, entriesOf, type TableInfo, tableInfoOf } from './state.ts';

const APP_ID = 'dfinery-elt';
/** Number of commits from one checkpoint to the next. */
const CHECKPOINT_EVERY = 100;
const RETENTION = 'delta.deletedFileRetentionDuration';
const SECONDS = /^interval (\d{1,9}) seconds$/;

/** The operation that a table's history shows for a change. */
const OPERATIONS = { load: 'WRITE', rewrite: 'OPTIMIZE', purge: 'DELETE' } as const;

/** One Delta table, at the latest version that this process has read. */
export class DeltaTable {
  readonly name: TableName;
  readonly #logFolder: LogFolder;
  readonly #versions: Versions;
  readonly #snapshot: LogSnapshot;
  readonly #logger: Logger;
  /** Data files by log entry: entries never change, so that each is parsed once. */
  readonly #parsed = new WeakMap<Add, DataFile>();

  private constructor(logFolder: LogFolder, snapshot: LogSnapshot, logger: Logger) {
    const name = logFolder.folder;
    this.name = name;
    this.#logFolder = logFolder;
    this.#versions = new Versions(logFolder.storage, {
      folder: `${name}/${LOG_FOLDER}`,
      pathOf: (version) => `${name}/${entryPath(version)}`,
      versionOf: (path) => logFileOf(pathInTable(name, path))?.version,
      before: (version) => `${name}/${beforeVersion(version)}`,
    });
    this.#snapshot = snapshot;
    this.#logger = logger;
  }

  /** Reads a table's log. Throws UserError for one that is damaged, foreign, or changed in ways unknown here. */
  static async open(logFolder: LogFolder, logger: Logger): Promise<DeltaTable> {
    const table = new DeltaTable(logFolder, await readSnapshot(logFolder), logger);
    if (table.exists) table.#check();
    else await refuseForeignFiles(logFolder.storage, table.name);
    return table;
  }

  get address(): string {
    return `${this.#logFolder.storage.address}/${this.name}`;
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
    return files.sort(byPath);
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
  committedAt(): Promise<number> {
    return this.#versions.storedAt(this.version);
  }

  /** The actions that make the table, or change its columns; empty if nothing needs to change. */
  shapeActions(fields: readonly DeltaField[], asInstants: boolean, retentionMs: number, now: number): Action[] {
    const wanted = schemaString(fields, this.fields);
    const { metaData: before, protocol } = this.#snapshot;
    const retention = `interval ${Math.ceil(retentionMs / 1_000)} seconds`;
    const upgrade: Action[] = supports(protocol, asInstants) ? [] : [{ protocol: protocolOf(asInstants) }];
    if (before?.schemaString === wanted && before.configuration[RETENTION] === retention) return upgrade;
    const metaData: MetaData = {
      ...before,
      id: before?.id ?? randomUUID(),
      name: this.name,
      format: { provider: 'parquet', options: {} },
      schemaString: wanted,
      partitionColumns: [PARTITION_COLUMN],
      createdTime: before?.createdTime ?? Math.floor(now),
      configuration: { ...before?.configuration, [RETENTION]: retention },
    };
    return [...upgrade, { metaData }];
  }

  /** Commits the next version of the table; returns false and changes nothing if somebody else committed it first. */
  async commit(actions: readonly Action[], { kind, state }: Pick<FileChange, 'kind' | 'state'>, now: number) {
    const version = this.version + 1;
    const windowNumber = lastWindowNumber(state.receipts);
    const commitInfo = {
      timestamp: Math.floor(now),
      operation: OPERATIONS[kind],
      operationParameters: { window: String(windowNumber) },
      readVersion: this.version,
      isBlindAppend: false,
      engineInfo: `dfinery-elt/${VERSION}`,
      txnId: randomUUID(),
    };
    const txn = { appId: APP_ID, version: windowNumber, lastUpdated: Math.floor(now) };
    const all: Action[] = [{ commitInfo }, ...actions, { txn }];
    const text = `${all.map((action) => JSON.stringify(action)).join('\n')}\n`;
    const domains = actions.flatMap((action) => ('domainMetadata' in action ? [action.domainMetadata] : []));
    const content = {
      entries: entriesOf(domains.map(({ domain, configuration }) => [domain, configuration])),
      paths: actions.flatMap((action) => ('add' in action ? [action.add.path] : [])),
    };
    const readLatest = async () => {
      const latest = await readSnapshot(this.#logFolder);
      const knows = (path: string) => latest.files.has(path) || latest.tombstones.has(path);
      return { entries: entriesOf(latest.domains), knows };
    };
    // The id of the transaction, which nobody else has, makes the text our own.
    if (!(await this.#versions.create(version, text, content, readLatest))) return false;
    this.#snapshot.apply(version, all);
    return true;
  }

  isLatest(): Promise<boolean> {
    return this.#versions.isLatest(this.version);
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

  /** Writes a checkpoint and removes all earlier files of the log, whose statistics name removed values. */
  async eraseHistory(now: number): Promise<void> {
    if (this.version < 1) return;
    await this.#writeCheckpoint(now);
    await this.#versions.eraseBefore(this.version, now, (path) => path === `${this.name}/${LAST_CHECKPOINT}`);
  }

  /** Writes a checkpoint without the tombstones that are older than the retention. */
  #writeCheckpoint(now: number): Promise<void> {
    return writeCheckpoint(this.#logFolder, this.version, this.#snapshot.actions(now - this.retentionMs));
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
    if (metaData.partitionColumns.length === 1 && metaData.partitionColumns[0] === PARTITION_COLUMN) return;
    throw configError(
      `${this.address} is no longer partitioned by ${PARTITION_COLUMN}: somebody else changed it. Nothing was done.`,
    );
  }
}
