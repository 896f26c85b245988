// This folder: the target `delta`: Delta Lake tables on a disk or in a bucket. `protocol/` is the protocol's log.

import { randomUUID } from 'node:crypto';
import { openStorage } from '../../storage/open.ts';
import { TABLES } from '../../table/columns.ts';
import { type Difference, difference, removedRowsWarning } from '../../table/differences.ts';
import { type DataFile, liveRows } from '../files/data-file.ts';
import { openWithoutLock, type PlaceWithoutLog } from '../files/file-table.ts';
import type { FilesFormat, OpenFilesOptions } from '../files/files-format.ts';
import { loggedColumns, rangedColumns } from '../files/log-entries.ts';
import { eraseFiles, expiredFiles, type KnownFiles, storeFiles, tryEraseFiles } from '../files/stored-files.ts';
import { type FileChange, type Layout, LostRace, type Snapshot, type TableLog } from '../files/table-log.ts';
import { addOf, removeOf, statsText } from './data-file.ts';
import { type Action, LOG_FOLDER } from './protocol/entry.ts';
import type { LogFolder } from './protocol/snapshot.ts';
import { fieldsOf, readableName } from './schema.ts';
import { derivedAction, stateActions, stateOfDomains } from './state.ts';
import { DeltaTable } from './table.ts';

export const DELTA: FilesFormat = {
  noun: 'place',
  async open(options, mode) {
    const storage = await openStorage(options.place, options);
    const logOf = async ({ engine, folder }: PlaceWithoutLog) => {
      const log = new DeltaLog({ storage, engine, work: folder }, options, mode === 'load');
      await log.read();
      if (mode !== 'read') log.warnOfRemovedRows();
      return log;
    };
    return openWithoutLock(storage, options, mode, logOf, `events/${LOG_FOLDER}`);
  },
};

class DeltaLog implements TableLog {
  readonly layout: Layout = { columnName: readableName };
  snapshot: Snapshot | undefined;
  /** In the order of `TABLES`. */
  #tables: readonly DeltaTable[] = [];
  readonly #parts: Omit<LogFolder, 'folder'>;
  readonly #options: OpenFilesOptions;
  readonly #isLoading: boolean;

  constructor(parts: Omit<LogFolder, 'folder'>, options: OpenFilesOptions, isLoading: boolean) {
    this.#parts = parts;
    this.#options = options;
    this.#isLoading = isLoading;
  }

  async read(): Promise<void> {
    const tables: DeltaTable[] = [];
    for (const folder of TABLES) tables.push(await DeltaTable.open({ ...this.#parts, folder }, this.#options.logger));
    this.#tables = tables;
    this.snapshot = this.#events.exists ? this.#snapshotOfTables() : undefined;
  }

  /** Warns of rows that another program has removed: after the next commit nothing shows that they were there. */
  warnOfRemovedRows(): void {
    if (this.snapshot === undefined) return;
    const { state, files } = this.snapshot;
    const warning = removedRowsWarning(state.receipts, liveRows(files));
    if (warning !== undefined) this.#options.logger.warn('table.rows_removed', `${this.#events.address}: ${warning}`);
  }

  /** Commits `events` last: if a run dies in between, it is unchanged and its windows are loaded again. */
  async commit(change: FileChange): Promise<void> {
    const changeId = randomUUID();
    const now = this.#options.clock.now();
    const tables = this.#tables.filter(({ name }) => change.state.tables.includes(name)).reverse();
    const actions = new Map<DeltaTable, readonly Action[]>();
    for (const table of tables) actions.set(table, await this.#actions(table, change, changeId, now));
    await storeFiles(this.#parts.storage, change.added);
    // Who read while another was committing may have the latest version of a table, but not of `events`.
    let isLost = !(await this.#events.isLatest());
    const done: DeltaTable[] = [];
    for (const [table, own] of actions) {
      isLost ||= !(await table.commit(own, change, now));
      if (isLost) {
        await this.#undo(change, done, now);
        throw new LostRace(table.address);
      }
      done.push(table);
    }
    this.snapshot = this.#snapshotOfTables();
    for (const table of tables) await table.checkpoint(this.#options.clock.now());
  }

  /** False if a table has a later version: a purge removes files at once. */
  async isUnchanged(): Promise<boolean> {
    for (const table of this.#tables) if (!(await table.isLatest())) return false;
    return true;
  }

  /** Compares the schemas in the log with the state; that of an outdated table may be older or newer. */
  async check(): Promise<Difference[]> {
    const differences: Difference[] = [];
    if (this.snapshot === undefined) return differences;
    const { state, outdated } = this.snapshot;
    for (const table of this.#tables) {
      if (!table.exists || outdated.has(table.name)) continue;
      const fields = await fieldsOf(this.#parts.engine, table.name, state);
      const declared = new Map(table.fields.map(({ name, type }) => [name, JSON.stringify(type)]));
      for (const { name, type } of fields) {
        const [actual, expected] = [declared.get(name) ?? 'absent', JSON.stringify(type)];
        if (actual === expected) continue;
        const message = `${table.name}: column ${name} should be ${expected} in the log, and is ${actual}`;
        differences.push(difference('columns', message));
      }
    }
    return differences;
  }

  expired(): Promise<readonly string[]> {
    const now = this.#options.clock.now();
    return expiredFiles(this.#parts.storage, this.#known, { now, retentionMs: this.#retentionMs });
  }

  async tryErase(removed: readonly DataFile[]): Promise<void> {
    await tryEraseFiles(this.#parts.storage, removed, this.#known);
  }

  /** Erases files and history. An uncommitted file older than the purge belongs to no writer that can still commit. */
  async erase(): Promise<readonly string[]> {
    const now = this.#options.clock.now();
    const purgedAt = await this.#events.committedAt();
    const unerased: string[] = [];
    for (const table of this.#tables) {
      // A run that was to make the table may have died before its first commit: then the table has files and no log.
      const from = table.exists ? await table.committedAt() : purgedAt;
      unerased.push(...(await eraseFiles(this.#parts.storage, table.name, this.#known, from)));
      await table.eraseHistory(now);
    }
    return unerased;
  }

  get #retentionMs(): number {
    return this.#options.retentionMs ?? this.#events.retentionMs;
  }

  get #known(): KnownFiles {
    const tableOf = (path: string) => this.#tables.find(({ name }) => path.startsWith(`${name}/`));
    return {
      isLive: (path) => tableOf(path)?.owns(path) === true,
      leftAt: (path) => tableOf(path)?.leftAt(path),
    };
  }

  get #events(): DeltaTable {
    return this.#tables[0];
  }

  #snapshotOfTables(): Snapshot {
    const events = this.#events;
    const files = this.#tables.flatMap((table) => table.files());
    const state = stateOfDomains(events.domains, liveRows(files), events.address);
    const id = events.info?.change_id;
    const follows = ({ info }: DeltaTable) => info?.source === events.version && info.source_change_id === id;
    const outdated = this.#tables.filter((table) => table !== events && !follows(table)).map(({ name }) => name);
    // A run that made a table and died before it committed `events` leaves rows in it that a purge must reach. The next
    // load that wants the table makes it anew.
    const isThere = ({ name, exists }: DeltaTable) => (exists && !this.#isLoading) || state.tables.includes(name);
    const tables = this.#tables.filter(isThere).map(({ name }) => name);
    return { state: { ...state, tables }, files, outdated: new Set(outdated) };
  }

  async #actions(table: DeltaTable, change: FileChange, changeId: string, now: number): Promise<Action[]> {
    const { state, kind } = change;
    const { name } = table;
    const fields = await fieldsOf(this.#parts.engine, name, state);
    const noted = { now, isDataChange: kind !== 'rewrite' };
    const added = change.added.filter((file) => file.table === name);
    const removed = change.removed.filter((file) => file.table === name);
    const logged = await loggedColumns(this.#parts.engine, added, rangedColumns(state));
    return [
      ...table.shapeActions(fields, state.timezone !== null, this.#retentionMs, now),
      ...(table === this.#events
        ? stateActions(table.domains, state, changeId)
        : [derivedAction(name, this.#events.version + 1, changeId)]),
      ...removed.map(({ path }) => removeOf(table.addOf(path), noted)),
      ...[...logged].map(([file, columns]) => addOf(file, statsText(file, columns, fields), noted)),
    ];
  }

  /** Removes all that was stored after a lost race; a table that was committed loses its new rows again. */
  async #undo(change: FileChange, done: readonly DeltaTable[], now: number): Promise<void> {
    for (const table of done) {
      const added = change.added.filter((file) => file.table === table.name);
      const actions = added.map(({ path }) => removeOf(table.addOf(path), { now, isDataChange: true }));
      if (actions.length > 0) await table.commit(actions, change, now);
    }
    await this.#parts.storage.erase(change.added.map(({ path }) => path));
  }
}
