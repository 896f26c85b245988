import { randomUUID } from 'node:crypto';
import { configFailure } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { TableName } from '../../table/columns.ts';
import { Domains, WRITER } from './domains.ts';
import { type DataFile, dataFileOf } from './files/data-file.ts';
import { isDraft, isOwnFile, PARTITION } from './files/names.ts';
import { type Field, schemaString } from './files/schema.ts';
import type { Action, Add, MetaData } from './log/actions.ts';
import { type LogPlace, writeCheckpoint } from './log/checkpoint.ts';
import { APP_ID, commitEntry } from './log/commit.ts';
import { checkProtocol, protocolOf } from './log/features.ts';
import { beforeVersion, entryPath, LOG_FOLDER } from './log/paths.ts';
import { readSnapshot } from './log/read.ts';
import type { Snapshot } from './log/snapshot.ts';

/** Commits from one checkpoint to the next (S45). */
const CHECKPOINT_EVERY = 100;
const DAY_MS = 86_400_000;
const RETENTION = 'delta.deletedFileRetentionDuration';
const SECONDS = /^interval (\d{1,9}) seconds$/;

/** The contents of a commit. */
export interface Change {
  /** As the history of a table shows it: `WRITE`, `OPTIMIZE`, `DELETE`. */
  readonly operation: string;
  /** The last window that is in the table then. */
  readonly window: number;
  readonly actions: readonly Action[];
  /** More for the history. */
  readonly info?: Readonly<Record<string, unknown>>;
}

/** The columns and properties that a table should have. */
export interface Shape {
  readonly fields: readonly Field[];
  readonly zoned: boolean;
  /** How long files that left the table stay; ms. */
  readonly retentionMs: number;
}

/** One table, at the latest version that this process has read. */
export class Table {
  readonly name: TableName;
  readonly #place: LogPlace;
  readonly #snapshot: Snapshot;
  readonly #logger: Logger;
  readonly #domains: Domains;
  /** Parsed log entries, which never change. */
  readonly #known = new WeakMap<Add, DataFile>();
  #files: { readonly version: number; readonly list: readonly DataFile[] } | undefined;

  private constructor(name: TableName, place: LogPlace, snapshot: Snapshot, logger: Logger) {
    this.name = name;
    this.#place = place;
    this.#snapshot = snapshot;
    this.#logger = logger;
    this.#domains = new Domains(snapshot, `${place.storage.address}/${name}`);
  }

  /** Reads a table's log. Throws Failure for one that is damaged, not ours, or changed in ways unknown here. */
  static async open(name: TableName, place: LogPlace, logger: Logger): Promise<Table> {
    const snapshot = await readSnapshot(place);
    const table = new Table(name, place, snapshot, logger);
    if (snapshot.version < 0) await table.#refuseForeignFiles();
    else table.#check();
    return table;
  }

  /** For messages: the address of the table. */
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
    return this.#domains;
  }

  /** The number of the last window that is in it; 0: none. */
  get window(): number {
    return this.domains.table()?.window ?? 0;
  }

  /** How long files that left it stay, as its last load said; ms. */
  get retentionMs(): number {
    const seconds = SECONDS.exec(this.#snapshot.metaData?.configuration[RETENTION] ?? '')?.[1];
    return seconds === undefined ? DAY_MS : Number(seconds) * 1_000;
  }

  get schema(): string | undefined {
    return this.#snapshot.metaData?.schemaString;
  }

  /** In order of their paths. */
  files(): readonly DataFile[] {
    if (this.#files?.version !== this.version) {
      const list = [...this.#snapshot.files].map(([path, add]) => this.#fileOf(path, add));
      this.#files = { version: this.version, list: list.sort((a, b) => (a.path < b.path ? -1 : 1)) };
    }
    return this.#files.list;
  }

  /** Paths of the files that left the table, with the instant (ms). */
  tombstones(): Map<string, number> {
    return new Map(
      [...this.#snapshot.tombstones].map(([path, { deletionTimestamp }]) => [path, deletionTimestamp ?? 0]),
    );
  }

  /** When the latest version was stored, by the clock of the store; ms since 1970. */
  async committedAt(): Promise<number> {
    const { storage, folder } = this.#place;
    const path = `${folder}/${entryPath(this.version)}`;
    for await (const found of storage.list(`${folder}/${LOG_FOLDER}`, `${folder}/${beforeVersion(this.version)}`)) {
      if (found.path === path) return found.modified;
    }
    return 0;
  }

  has(path: string): boolean {
    return this.#snapshot.files.has(path);
  }

  /** What makes the table, or changes its columns; nothing where it is as it should be. */
  shapeActions(shape: Shape, now: number): Action[] {
    const wanted = schemaString(shape.fields);
    const before = this.#snapshot.metaData;
    const configuration = {
      ...before?.configuration,
      [RETENTION]: `interval ${Math.ceil(shape.retentionMs / 1_000)} seconds`,
    };
    const isSame = before?.schemaString === wanted && sameTexts(before.configuration, configuration);
    if (isSame) return [];
    const metaData: MetaData = {
      id: before?.id ?? randomUUID(),
      name: this.name,
      format: { provider: 'parquet', options: {} },
      schemaString: wanted,
      partitionColumns: [PARTITION],
      createdTime: before?.createdTime ?? Math.floor(now),
      configuration,
    };
    return before === undefined ? [{ protocol: protocolOf(shape.zoned) }, { metaData }] : [{ metaData }];
  }

  /** Commits the next version; false, without a change, if another writer committed it first. */
  commit({ operation, window, actions, info }: Change, now: number): Promise<boolean> {
    const commitInfo = {
      timestamp: Math.floor(now),
      operation,
      operationParameters: { window: String(window) },
      readVersion: this.#snapshot.version,
      isBlindAppend: false,
      engineInfo: `dfinery-elt/${WRITER}`,
      txnId: randomUUID(),
      ...info,
    };
    const txn = { appId: APP_ID, version: window, lastUpdated: Math.floor(now) };
    return commitEntry(this.#place, this.#snapshot, [{ commitInfo }, ...actions, { txn }]);
  }

  /** Writes a checkpoint every hundred versions. Failures are only logged: the commits are valid without it. */
  async checkpoint(now: number, retentionMs: number): Promise<void> {
    const { version } = this.#snapshot;
    if (version === 0 || version % CHECKPOINT_EVERY !== 0) return;
    await this.checkpointNow(now, retentionMs).catch((error) => {
      const message = `${this.address}: no checkpoint of version ${version} could be written; the next run tries the next.`;
      this.#logger.warn('delta.checkpoint', message, { version, error: String(error) });
    });
  }

  checkpointNow(now: number, retentionMs: number): Promise<void> {
    return writeCheckpoint(this.#place, this.#snapshot, now - retentionMs);
  }

  #fileOf(path: string, add: Add): DataFile {
    const known = this.#known.get(add) ?? dataFileOf(path, add, this.address);
    this.#known.set(add, known);
    return known;
  }

  #check(): void {
    const { protocol, metaData } = this.#snapshot;
    if (protocol === undefined || metaData === undefined) {
      throw configFailure(`${this.address} has a log without protocol or metadata: restore it from a copy.`);
    }
    if (this.domains.table()?.table !== this.name) {
      throw configFailure(`${this.address} is a Delta table that this program did not make: give another place.`);
    }
    checkProtocol(protocol, this.address);
    if (metaData.partitionColumns.length === 1 && metaData.partitionColumns[0] === PARTITION) return;
    throw configFailure(
      `${this.address} is no longer partitioned by ${PARTITION}: somebody else changed it. Nothing was done.`,
    );
  }

  /** Files in the folder of a table without a log are somebody else's, but for those of a run that died before its first commit. */
  async #refuseForeignFiles(): Promise<void> {
    const { storage, folder } = this.#place;
    for await (const { path } of storage.list(folder)) {
      if (isOwnFile(path.slice(folder.length + 1)) || isDraft(path)) continue;
      throw configFailure(
        `${this.address} holds files that this program did not write: give another place, or move them away.`,
      );
    }
  }
}

function sameTexts(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const keys = Object.keys(b);
  return keys.length === Object.keys(a).length && keys.every((key) => a[key] === b[key]);
}
