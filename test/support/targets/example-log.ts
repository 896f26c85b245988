import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { configError } from '../../../src/base/errors.ts';
import { jsonOf } from '../../../src/base/json.ts';
import { openStorage } from '../../../src/storage/open.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import { TABLES, type TableName } from '../../../src/table/columns.ts';
import { receiptsWith } from '../../../src/table/receipts.ts';
import { type DataFile, liveRows } from '../../../src/targets/files/data-file.ts';
import { openWithoutLock } from '../../../src/targets/files/file-table.ts';
import type { FilesFormat, OpenFilesOptions } from '../../../src/targets/files/files-format.ts';
import {
  entryChanges,
  type FileNote,
  notedOf,
  noteOf,
  stateEntries,
  stateFrom,
} from '../../../src/targets/files/log-entries.ts';
import {
  DEFAULT_RETENTION_MS,
  eraseFiles,
  expiredFiles,
  type KnownFiles,
  refuseForeignFiles,
  storeFiles,
  tryEraseFiles,
} from '../../../src/targets/files/stored-files.ts';
import {
  type FileChange,
  filesAfter,
  type Layout,
  LostRace,
  type Snapshot,
  type TableLog,
} from '../../../src/targets/files/table-log.ts';
import { type VersionNames, Versions } from '../../../src/targets/files/versions.ts';
import { FolderFixture } from './place.ts';
import { query } from './query.ts';

// A whole log, as docs/targets.md describes it: a version is a JSON document that names a manifest, the list of the files.

/** A file of the manifest. Rows, bytes and the rest that the log has a member for are its own; `note` is this program's. */
interface ListedFile extends Pick<DataFile, 'table' | 'path' | 'date' | 'rows' | 'bytes'> {
  readonly columns: readonly string[];
  readonly note: FileNote;
}

interface Version {
  readonly version: number;
  readonly id: string;
  readonly manifest: string;
  readonly entries: Readonly<Record<string, string>>;
  readonly timezone: string | null;
  readonly tables: readonly TableName[];
  readonly eventNames: readonly string[];
  readonly retentionMs: number;
  /** When files left, ms since 1970, by path. */
  readonly left: Readonly<Record<string, number>>;
}

const VERSION = /^_log\/(\d{9})\.json$/;
const before = (version: number) => `_log/${String(version).padStart(9, '0')}`;
const NAMES: VersionNames = {
  folder: '_log',
  before,
  pathOf: (version) => `${before(version)}.json`,
  versionOf: (path) => (VERSION.test(path) ? Number(VERSION.exec(path)?.[1]) : undefined),
};
const isManifest = (path: string) => /^events\/metadata\/[0-9a-f-]{36}\.json$/.test(path);

export const EXAMPLE: FilesFormat = {
  noun: 'place',
  async open(options, mode) {
    const storage = await openStorage(options.place, options);
    const logOf = async () => {
      const log = new ExampleLog(storage, options);
      await log.read();
      if (mode === 'load' && log.snapshot === undefined) {
        for (const table of TABLES) await refuseForeignFiles(storage, table, isManifest);
      }
      return log;
    };
    return openWithoutLock(storage, options, mode, logOf, NAMES.folder);
  },
};

class ExampleLog implements TableLog {
  readonly layout: Layout = {};
  snapshot: Snapshot | undefined;
  #latest: Version | undefined;
  readonly #storage: Storage;
  readonly #options: OpenFilesOptions;
  readonly #versions: Versions;

  constructor(storage: Storage, options: OpenFilesOptions) {
    this.#storage = storage;
    this.#options = options;
    this.#versions = new Versions(storage, NAMES);
  }

  async read(): Promise<void> {
    const latest = await this.#readVersion();
    this.#latest = latest?.version;
    this.snapshot = latest && snapshotOf(latest.version, latest.files, this.#storage);
  }

  async commit(change: FileChange): Promise<void> {
    const { state, added, removed } = change;
    const files = filesAfter(this.snapshot?.files ?? [], change);
    const entries = stateEntries(state);
    const now = this.#options.clock.now();
    const latest = this.#latest;
    const manifest = `events/metadata/${randomUUID()}.json`;
    const gone = [...removed.map(({ path }) => path), ...(latest === undefined ? [] : [latest.manifest])];
    const version: Version = {
      version: (latest?.version ?? -1) + 1,
      id: randomUUID(),
      manifest,
      entries: Object.fromEntries(entries),
      ...{ timezone: state.timezone, tables: state.tables, eventNames: state.eventNames },
      retentionMs: this.#retentionMs,
      left: { ...latest?.left, ...Object.fromEntries(gone.map((path) => [path, now])) },
    };
    await storeFiles(this.#storage, added);
    await this.#storage.write(manifest, JSON.stringify(files.map(listed)));
    const content = {
      entries: new Map(entryChanges(new Map(Object.entries(latest?.entries ?? {})), entries).written),
      paths: added.map(({ path }) => path),
    };
    if (!(await this.#versions.create(version.version, JSON.stringify(version), content, () => this.#readLatest()))) {
      await this.#storage.erase([manifest, ...content.paths]);
      throw new LostRace(this.#storage.address);
    }
    this.#latest = version;
    this.snapshot = { state, files, outdated: new Set() };
  }

  isUnchanged(): Promise<boolean> {
    return this.#versions.isLatest(this.#latest?.version ?? -1);
  }

  expired(): Promise<readonly string[]> {
    const { clock } = this.#options;
    return expiredFiles(this.#storage, this.#known, { now: clock.now(), retentionMs: this.#retentionMs });
  }

  tryErase(removed: readonly DataFile[]): Promise<void> {
    return tryEraseFiles(this.#storage, removed, this.#known);
  }

  async erase(): Promise<readonly string[]> {
    const { version = 0 } = this.#latest ?? {};
    const purgedAt = await this.#versions.storedAt(version);
    const unerased: string[] = [];
    for (const table of TABLES) unerased.push(...(await eraseFiles(this.#storage, table, this.#known, purgedAt)));
    await this.#versions.eraseBefore(version, this.#options.clock.now());
    return unerased;
  }

  get #retentionMs(): number {
    return this.#options.retentionMs ?? this.#latest?.retentionMs ?? DEFAULT_RETENTION_MS;
  }

  get #known(): KnownFiles {
    const live = new Set(this.snapshot?.files.map(({ path }) => path)).add(this.#latest?.manifest ?? '');
    return {
      isLive: (path) => live.has(path),
      leftAt: (path) => this.#latest?.left[path],
      isLogFile: isManifest,
    };
  }

  async #readLatest() {
    const { version, files } = (await this.#readVersion()) ?? { files: [] };
    const paths = new Set(files.map(({ path }) => path));
    const entries = new Map(Object.entries(version?.entries ?? {}));
    return { entries, knows: (path: string) => paths.has(path) || version?.left[path] !== undefined };
  }

  /** The latest version, with the files that its manifest lists; undefined if there is none. */
  async #readVersion(): Promise<{ readonly version: Version; readonly files: readonly DataFile[] } | undefined> {
    for (;;) {
      let latest: number | undefined;
      for await (const { path } of this.#storage.list(NAMES.folder)) latest = NAMES.versionOf(path) ?? latest;
      if (latest === undefined) return undefined;
      const version = await this.#json<Version>(NAMES.pathOf(latest));
      const files = version && (await this.#json<ListedFile[]>(version.manifest));
      if (version !== undefined && files !== undefined) return { version, files: files.map(fileOf) };
      // A purge, or a load after the retention, has removed one of them since: then there is a later version.
      if (!(await this.#versions.isLatest(latest))) continue;
      throw damaged(this.#storage, version?.manifest ?? NAMES.pathOf(latest), 'is missing');
    }
  }

  async #json<T>(path: string): Promise<T | undefined> {
    const text = await this.#storage.read(path);
    if (text === undefined) return undefined;
    const found = jsonOf(text.toString('utf8'));
    if (found === undefined) throw damaged(this.#storage, path, 'is not JSON');
    return found as T;
  }
}

const damaged = ({ address }: Storage, path: string, why: string) =>
  configError(`${address}/${path} ${why}: restore it from a copy.`);

function listed(file: DataFile): ListedFile {
  const { table, path, date, rows, bytes, columns } = file;
  return { table, path, date, rows, bytes, columns: [...columns], note: noteOf(file) };
}

const fileOf = ({ note, columns, ...file }: ListedFile): DataFile => ({
  ...file,
  columns: new Set(columns),
  ...notedOf(note),
});

function snapshotOf({ version, entries, ...own }: Version, files: readonly DataFile[], storage: Storage): Snapshot {
  const { timezone, tables, eventNames } = own;
  const { receipts, ...stored } = stateFrom(new Map(Object.entries(entries)), (name, why) =>
    damaged(storage, NAMES.pathOf(version), `has a damaged entry ${name} (${why})`),
  );
  const state = { ...stored, receipts: receiptsWith(receipts, liveRows(files)), timezone, tables, eventNames };
  return { state, files, outdated: new Set() };
}

/** A place of the example, and the spool files of the windows made here. */
export class ExampleFixture extends FolderFixture {
  readonly root = join(this.dir, 'example');
  readonly place = this.root;

  read(sql: string): Promise<Record<string, unknown>[]> {
    const latest = readdirSync(join(this.root, '_log')).sort().at(-1) ?? '';
    const { manifest } = JSON.parse(readFileSync(join(this.root, '_log', latest), 'utf8')) as Version;
    const files = JSON.parse(readFileSync(join(this.root, manifest), 'utf8')) as ListedFile[];
    const withs = TABLES.map((name) => {
      const paths = files.filter(({ table }) => table === name).map(({ path }) => `'${join(this.root, path)}'`);
      return `${name} AS (SELECT * FROM read_parquet([${paths.join(', ')}], union_by_name = true))`;
    });
    return query(':memory:', `WITH ${withs.join(', ')} ${sql}`);
  }
}
