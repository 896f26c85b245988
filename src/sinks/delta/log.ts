// This folder: the target `delta`: Delta Lake tables on a disk or in a bucket. `protocol/` is the protocol's log.

import { randomUUID } from 'node:crypto';
import { TABLES, type TableName } from '../../table/columns.ts';
import { type Difference, difference } from '../../table/differences.ts';
import { lastWindow } from '../../table/receipts.ts';
import { openWithoutLock } from '../files/file-table.ts';
import {
  type DataFile,
  type FileChange,
  type FilesFormat,
  type Layout,
  LostRace,
  liveRows,
  type NewFile,
  type OpenFilesOptions,
  type Snapshot,
  type TableLog,
} from '../files/log.ts';
import { loggedColumns, rangedColumns } from '../files/log-entries.ts';
import { checkErasable, eraseFiles, expiredFiles, type KnownFiles, storeFiles } from '../files/stored-files.ts';
import type { Engine } from '../sql/engine/engine.ts';
import { openStorage } from '../storage/open.ts';
import type { Storage } from '../storage/storage.ts';
import { addOf, removeOf, statsText } from './data-file.ts';
import { type Action, LOG_FOLDER } from './protocol/entry.ts';
import { fieldsOf, readableName } from './schema.ts';
import { derivedAction, stateActions, stateOfDomains } from './state.ts';
import { type CommitInfo, DeltaTable } from './table.ts';

const OPERATIONS = { load: 'WRITE', rewrite: 'OPTIMIZE', purge: 'DELETE' } as const satisfies Record<
  FileChange['kind'],
  string
>;

export const DELTA: FilesFormat = {
  noun: 'place',
  hasOneWriter: false,
  async open(options, mode) {
    const storage = options.storage ?? (await openStorage(options.place, options.env, options.signal));
    const logOf = async (engine: Engine, folder: string) => {
      const log = new DeltaLog(storage, engine, folder, options);
      await log.refresh();
      return log;
    };
    return openWithoutLock(storage, options, mode, logOf, `events/${LOG_FOLDER}`);
  },
};

class DeltaLog implements TableLog {
  readonly layout: Layout = { columnName: readableName };
  snapshot: Snapshot | undefined;
  #tables = new Map<TableName, DeltaTable>();
  readonly #storage: Storage;
  readonly #engine: Engine;
  readonly #folder: string;
  readonly #options: OpenFilesOptions;

  constructor(storage: Storage, engine: Engine, folder: string, options: OpenFilesOptions) {
    this.#storage = storage;
    this.#engine = engine;
    this.#folder = folder;
    this.#options = options;
  }

  get retentionMs(): number {
    return this.#options.retentionMs ?? this.#table('events').retentionMs;
  }

  async refresh(): Promise<void> {
    for (const name of TABLES) {
      const place = { storage: this.#storage, folder: name, engine: this.#engine, work: this.#folder };
      this.#tables.set(name, await DeltaTable.open(name, place, this.#options.logger));
    }
    this.snapshot = this.#read();
  }

  /** Commits `events` last: if a run dies in between, it is unchanged and its windows are loaded again (S41). */
  async commit(change: FileChange): Promise<void> {
    const changeId = randomUUID();
    const done: { readonly table: DeltaTable; readonly added: readonly NewFile[] }[] = [];
    const names = TABLES.filter((name) => change.state.tables.includes(name));
    const entries = new Map<TableName, readonly Action[]>();
    for (const name of names) entries.set(name, await this.#actions(name, change, changeId));
    await storeFiles(this.#storage, change.added);
    // A process that read the log while another writer was committing may have the latest version of a table, but not
    // of `events`.
    let isLost = !(await this.#table('events').isLatest());
    for (const name of [...names.filter((one) => one !== 'events'), 'events' as const]) {
      const table = this.#table(name);
      const added = change.added.filter((file) => file.table === name);
      const actions = entries.get(name) ?? [];
      isLost ||= !(await table.commit(actions, this.#infoOf(change)));
      if (isLost) {
        await this.#undo(change, done);
        throw new LostRace(table.address);
      }
      done.push({ table, added });
    }
    this.snapshot = this.#read();
    for (const name of names) await this.#table(name).checkpoint(this.#options.clock.now());
  }

  /** False if a table has a later version: a purge removes files at once. */
  async isUnchanged(): Promise<boolean> {
    for (const table of this.#tables.values()) if (!(await table.isLatest())) return false;
    return true;
  }

  /** Compares the schemas in the log with the state; that of a stale table may be older or newer. */
  async check(): Promise<Difference[]> {
    const found: Difference[] = [];
    if (this.snapshot === undefined) return found;
    const { state, stale } = this.snapshot;
    for (const table of this.#tables.values()) {
      if (!table.exists || stale.has(table.name)) continue;
      const fields = await fieldsOf(this.#engine, table.name, state);
      const declared = new Map(table.fields.map(({ name, type }) => [name, JSON.stringify(type)]));
      for (const { name, type } of fields) {
        const [actual, expected] = [declared.get(name) ?? 'absent', JSON.stringify(type)];
        if (actual === expected) continue;
        const message = `${table.name}: column ${name} should be ${expected} in the log, and is ${actual}`;
        found.push(difference('columns', message));
      }
    }
    return found;
  }

  expired(): Promise<readonly string[]> {
    const { retentionMs } = this;
    return expiredFiles(this.#storage, this.#known, { now: this.#options.clock.now(), retentionMs });
  }

  async checkErase(removed: readonly DataFile[]): Promise<void> {
    await checkErasable(this.#storage, removed, this.#known);
  }

  /** Erases files and history. An uncommitted file older than the purge belongs to no writer that can still commit. */
  async erase(): Promise<void> {
    const now = this.#options.clock.now();
    for (const table of this.#tables.values()) {
      if (!table.exists) continue;
      await eraseFiles(this.#storage, table.name, this.#known, await table.committedAt());
      await table.eraseHistory(now);
    }
  }

  get #known(): KnownFiles {
    const tableOf = (path: string) => [...this.#tables.values()].find(({ name }) => path.startsWith(`${name}/`));
    return {
      isLive: (path) => tableOf(path)?.owns(path) === true,
      leftAt: (path) => tableOf(path)?.leftAt(path),
    };
  }

  #table(name: TableName): DeltaTable {
    const table = this.#tables.get(name);
    if (table === undefined) throw new RangeError(`the table ${name} was not read`);
    return table;
  }

  #read(): Snapshot | undefined {
    const events = this.#table('events');
    const tables = [...this.#tables.values()];
    const files = tables.flatMap((table) => table.files());
    if (!events.exists) return undefined;
    const state = stateOfDomains(events.domains, liveRows(files), events.address);
    const id = events.info?.change_id;
    const follows = ({ info }: DeltaTable) => info?.source === events.version && info.source_change_id === id;
    const stale = tables.filter((table) => table !== events && !follows(table)).map(({ name }) => name);
    return { state, files, stale: new Set(stale) };
  }

  #infoOf({ kind, state }: FileChange): CommitInfo {
    return { operation: OPERATIONS[kind], window: lastWindow(state.receipts), now: this.#options.clock.now() };
  }

  /** The actions of the next entry of one table. */
  async #actions(name: TableName, change: FileChange, changeId: string): Promise<Action[]> {
    const { state, kind } = change;
    const table = this.#table(name);
    const now = this.#options.clock.now();
    const fields = await fieldsOf(this.#engine, name, state);
    const noted = { now, isDataChange: kind !== 'rewrite' };
    const added = change.added.filter((file) => file.table === name);
    const removed = change.removed.filter((file) => file.table === name);
    const logged = await loggedColumns(this.#engine, added, rangedColumns(state));
    return [
      ...table.shapeActions({ fields, asInstants: state.timezone !== null, retentionMs: this.retentionMs }, now),
      ...(name === 'events'
        ? stateActions(table.domains, state, changeId)
        : [derivedAction(name, this.#table('events').version + 1, changeId)]),
      ...removed.map(({ path }) => removeOf(table.addOf(path), noted)),
      ...[...logged].map(([file, columns]) => addOf(file, statsText(file, columns, fields), noted)),
    ];
  }

  /** Removes all that was stored after a lost race; a table that was committed loses its new rows again. */
  async #undo(
    change: FileChange,
    done: readonly { readonly table: DeltaTable; readonly added: readonly NewFile[] }[],
  ): Promise<void> {
    const noted = { now: this.#options.clock.now(), isDataChange: true };
    for (const { table, added } of done) {
      const actions = added.map(({ path }) => removeOf(table.addOf(path), noted));
      if (actions.length > 0) await table.commit(actions, this.#infoOf(change));
    }
    await this.#storage.erase(change.added.map(({ path }) => path));
  }
}
