// This folder: how a window, a purge or a compaction becomes commits of all tables.

import { transientFailure } from '../../../base/errors.ts';
import { type StoredColumn, TABLES, type TableName } from '../../../table/columns.ts';
import type { Zone } from '../../../types/zone.ts';
import { addsOf, type DataFile, type NewFile, removeOf } from '../files/data-file.ts';
import { fieldsOf } from '../files/schema.ts';
import type { Lake } from '../lake.ts';
import type { Action } from '../log/actions.ts';
import { keyColumns } from './columns.ts';
import { type Derived, deriveTable, type EventFile, type Other } from './derive.ts';

/** A file of `events` that is written, with the columns it has. */
export type NewEventFile = NewFile & { readonly columns: ReadonlySet<string> };

/** A change of the table `events`. */
export interface EventsChange {
  /** Of its own: the other tables name it as what they follow from. */
  readonly id: string;
  /** As the history of the table shows it. */
  readonly operation: 'WRITE' | 'OPTIMIZE' | 'DELETE';
  /** Number of the last window that is in the table after the change. */
  readonly window: number;
  readonly columns: readonly StoredColumn[];
  readonly removed: readonly DataFile[];
  readonly added: readonly NewEventFile[];
  /** False when the same rows are only moved to other files. */
  readonly isChange: boolean;
  /** What is kept in the log beside the files. */
  readonly actions: readonly Action[];
  readonly info?: Readonly<Record<string, unknown>>;
}

/** Settings of every change of a run. */
export interface Settings {
  readonly zone: Zone | undefined;
  /** The tables that are kept. */
  readonly tables: readonly TableName[];
  readonly retentionMs: number;
  now(): number;
}

/** A change whose files are written locally and that is not committed. */
export interface PreparedChange {
  readonly change: EventsChange;
  readonly actions: readonly Action[];
  readonly derived: readonly Derived[];
}

/** Derives the changes of the other tables and writes their files locally. Called inside a transaction of the engine. */
export async function prepareChange(lake: Lake, change: EventsChange, settings: Settings): Promise<PreparedChange> {
  const { zone, retentionMs, tables } = settings;
  const now = settings.now();
  const { columns, removed, added, isChange } = change;
  const derived: Derived[] = [];
  const others = TABLES.filter((name): name is Other => name !== 'events' && tables.includes(name));
  if (others.length > 0) {
    const { events, left } = await eventsAfter(lake, change);
    const { id, window } = change;
    const derivation = { id, lake, columns, zone, window, retentionMs, now, events, left, isChange };
    for (const name of others) derived.push(await deriveTable(derivation, name));
  }
  const fields = await fieldsOf(lake.engine, 'events', columns, zone);
  const actions = [
    ...lake.events.shapeActions({ fields, zoned: zone !== undefined, retentionMs }, now),
    ...change.actions,
    ...removed.map((file) => removeOf(file, now, isChange)),
    ...(await addsOf(lake.engine, added, fields, now, isChange)),
  ];
  return { change, actions, derived };
}

async function eventsAfter(lake: Lake, { removed, added, columns }: EventsChange) {
  const leaving = new Set(removed.map(({ path }) => path));
  const files = lake.events.files();
  const locals = await lake.fetchColumns('events', files, keyColumns(columns));
  const localOf = (path: string) => locals.get(path) ?? '';
  const kept = files.filter(({ path }) => !leaving.has(path));
  const whole = async (file: DataFile) => [...(await lake.fetch('events', [file])).values()][0] ?? '';
  const events: EventFile[] = [
    ...kept.map((file) => ({ ...file, local: localOf(file.path), whole: () => whole(file) })),
    ...added.map((file) => ({ ...file, whole: async () => file.local })),
  ];
  return { events, left: removed.map(({ path }) => localOf(path)) };
}

/**
 * Stores the files, then commits: the other tables first, `events` last, so that a run that dies in between has done
 * nothing to `events` and its window comes again (S41). Throws a transient failure when another writer was first.
 */
export async function commitChange(lake: Lake, prepared: PreparedChange, settings: Settings): Promise<void> {
  const { change, actions, derived } = prepared;
  await lake.store('events', change.added);
  for (const { name, files } of derived) await lake.store(name, files);
  const { operation, window, info } = change;
  for (const { name, actions: own, files } of derived) {
    await commit(lake, name, { operation, window, actions: own }, files, settings);
  }
  await commit(
    lake,
    'events',
    { operation, window, actions, ...(info !== undefined && { info }) },
    change.added,
    settings,
  );
  const lists = [{ name: 'events' as const, removed: change.removed }, ...derived];
  for (const { name, removed } of lists) {
    await lake.dropCopies(
      name,
      removed.map(({ path }) => path),
    );
    await lake.table(name).checkpoint(settings.now(), settings.retentionMs);
  }
}

async function commit(
  lake: Lake,
  name: TableName,
  entry: Parameters<Lake['events']['commit']>[0],
  files: readonly NewFile[],
  settings: Settings,
): Promise<void> {
  const table = lake.table(name);
  if (await table.commit(entry, settings.now())) return;
  // Another writer made this version, so no commit will ever name these files.
  await lake.storage.remove(files.map(({ path }) => `${name}/${path}`)).catch(() => {});
  throw transientFailure(
    `${table.address}: another writer made version ${table.version + 1} first. Nothing of this was kept: run again.`,
  );
}
