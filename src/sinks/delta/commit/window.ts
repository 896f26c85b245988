import { randomUUID } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import type { Window } from '../../../extract/window.ts';
import {
  type ChangeContext,
  type ColumnChange,
  changeRecords,
  columnChanges,
  missedIn,
} from '../../../table/changes.ts';
import { FIRST_COLUMNS, typedColumns } from '../../../table/columns.ts';
import { incomingColumns } from '../../../table/incoming.ts';
import { type PlannedColumn, planColumns, type Rules } from '../../../table/plan.ts';
import { overlapOf, type StoredWindow } from '../../../table/receipts.ts';
import type { Commit } from '../../sink.ts';
import { NO_DATE, readFiles, writeFile } from '../../sql/files/parquet-file.ts';
import { findReplaced, type Incoming, type Replaced } from '../../sql/files/replaced.ts';
import { type WindowFile, writeWindowFiles } from '../../sql/files/window-files.ts';
import { hasRowsWithoutId, type WindowLoad } from '../../sql/rows/file-query.ts';
import { rescuedCounts } from '../../sql/rows/rescued.ts';
import { dropReceipt, keptReceipt, setChanges, setColumns, setReceipt, setState, setTable } from '../domains.ts';
import { type DataFile, newFile, windowsIn } from '../files/data-file.ts';
import type { Lake } from '../lake.ts';
import { type EventsChange, type NewEventFile, type PreparedChange, prepareChange, type Settings } from './change.ts';
import { columnsOfWindow, isRetypedIn, keyColumns, selectAfter, storedColumn } from './columns.ts';
import { METADATA } from './metadata.ts';
import { liveRows, supersededReceipts } from './receipts.ts';

/** A window's change, prepared to be carried out, and what there is to tell of it. */
export interface Prepared {
  readonly prepared: PreparedChange;
  readonly commit: Commit;
  readonly plan: readonly PlannedColumn[];
  /** As they are in the commit. */
  readonly changes: readonly ColumnChange[];
}

/** A window on its way into the table. */
interface Merge {
  readonly lake: Lake;
  readonly load: WindowLoad;
  readonly plan: readonly PlannedColumn[];
  readonly incoming: Incoming;
}

/** Writes every file that a window adds or changes, beside the table. Inside a transaction. */
export async function prepareWindow(lake: Lake, window: Window, rules: Rules, settings: Settings): Promise<Prepared> {
  const { engine, events } = lake;
  const number = events.window + 1;
  const arrivals = incomingColumns(window.files);
  const plan = planColumns(events.domains.columns() ?? FIRST_COLUMNS, arrivals.columns, rules, number === 1);
  const load: WindowLoad = { window, number, arrivals, plan: columnsOfWindow(plan), zone: settings.zone };
  const fresh = await writeFresh(lake, load);
  const paths = fresh.map(({ path }) => path);
  const overlap = overlapOf(liveWindows(lake), window.receipt, window.state.ranges_inclusive === false);
  const incoming = { files: fresh, columns: plan, hasRowsWithoutId: hasRowsWithoutId(load), overlap, zone: load.zone };
  const { removed, rewritten, replaced } = await rewriteOld({ lake, load, plan, incoming });
  const names = ownNames([...load.plan.values()]);
  const added = [...replaced.files.map((file) => newEventFile(file, number, names)), ...rewritten];
  const rescued = await rescuedCounts(engine, paths.length === 0 ? undefined : readFiles(paths), plan);
  const { idRepeats } = replaced;
  const changes = changeRecords(plan, changingWindow(load, lake, settings.now()));
  const change = changeOf(lake, { window, number, plan, removed, added, idRepeats, changes }, settings);
  return {
    prepared: await prepareChange(lake, change, settings),
    commit: { rows: window.receipt.rows, ...columnChanges(plan, number === 1), rescued, idRepeats },
    plan,
    changes,
  };
}

function changingWindow({ window, number, arrivals }: WindowLoad, { events }: Lake, now: number): ChangeContext {
  return {
    windows: [{ id: window.receipt.id, columns: arrivals.columns }],
    changedAt: new Date(now).toISOString(),
    isFirst: number === 1,
    missed: missedIn([...events.domains.changes().values()].flat()),
  };
}

async function writeFresh(lake: Lake, load: WindowLoad): Promise<WindowFile[]> {
  const { engine, isLowOnMemory, address } = lake;
  const folder = lake.newPath('window');
  await mkdir(folder);
  return await writeWindowFiles({ engine, isLowOnMemory, folder, place: address }, load, METADATA);
}

function newEventFile({ path, date, rows }: WindowFile, number: number, columns: ReadonlySet<string>): NewEventFile {
  return { ...newFile(path, date === NO_DATE ? null : date, { windows: new Map([[number, rows]]) }), columns };
}

/** The names of all columns of a file of `events`. */
function ownNames(columns: readonly PlannedColumn[]): Set<string> {
  return new Set(['_key', '_dfinery_window', '_rescued', ...typedColumns(columns).map(({ name }) => name)]);
}

/** Windows that still have rows of their own. */
function liveWindows({ events }: Lake): StoredWindow[] {
  const live = liveRows(events.files());
  const receipts = events.domains.receipts().filter(({ window }) => (live.get(window) ?? 0) > 0);
  return receipts.map(({ window, from, to }) => ({ number: window, from, to }));
}

interface Rewrite {
  readonly removed: DataFile[];
  readonly rewritten: NewEventFile[];
  readonly replaced: Replaced;
}

/** Older files that lose rows to the window or hold a column that changes its type: they go, what stays of them is written. */
async function rewriteOld(merge: Merge): Promise<Rewrite> {
  const { lake, plan, incoming } = merge;
  const old = lake.events.files();
  const locals = await lake.fetchColumns('events', old, keyColumns(plan));
  const replaced = await findReplaced(lake, [...locals.values()], incoming, METADATA);
  const removed: DataFile[] = [];
  const rewritten: NewEventFile[] = [];
  for (const file of old) {
    const local = locals.get(file.path) ?? '';
    const gone = replaced.counts.get(local) ?? 0;
    if (gone === 0 && !isRetypedIn(plan, file.columns)) continue;
    removed.push(file);
    if (gone < file.rows) rewritten.push(await rewrite(merge, file, gone, replaced.isKept));
  }
  return { removed, rewritten, replaced };
}

async function rewrite({ lake, load, plan }: Merge, file: DataFile, gone: number, isKept: string) {
  const from = [...(await lake.fetch('events', [file])).values()];
  const where = gone > 0 ? ` WHERE ${isKept}` : '';
  const query = `SELECT ${selectAfter(plan, file.columns, load.zone)} FROM ${readFiles(from)}${where}`;
  const local = lake.newPath('rewritten');
  await writeFile(lake, { query, rows: file.rows - gone }, local, METADATA);
  const windows = gone > 0 ? await windowsIn(lake.engine, local) : file.windows;
  return { ...newFile(local, file.date, { windows }), columns: file.columns };
}

interface Outcome {
  readonly window: Window;
  readonly number: number;
  readonly plan: readonly PlannedColumn[];
  readonly removed: readonly DataFile[];
  readonly added: readonly NewEventFile[];
  readonly idRepeats: number;
  readonly changes: readonly ColumnChange[];
}

function changeOf(
  lake: Lake,
  { window, number, plan, removed, added, idRepeats, changes }: Outcome,
  settings: Settings,
): EventsChange {
  const { domains } = lake.events;
  const columns = plan.map(storedColumn);
  const kept = keptReceipt(window.receipt, number, idRepeats);
  const leaving = new Set(removed.map(({ path }) => path));
  const after = [...lake.events.files().filter(({ path }) => !leaving.has(path)), ...added];
  const spent = supersededReceipts([...domains.receipts(), kept], liveRows(after));
  const timezone = settings.zone?.name ?? null;
  const id = randomUUID();
  return {
    id,
    operation: 'WRITE',
    window: number,
    columns,
    removed,
    added,
    isChange: true,
    actions: [
      setTable({ table: 'events', window: number, timezone, tables: settings.tables, change_id: id }),
      setState(window.state),
      ...(number === 1 || plan.some(({ isChanged }) => isChanged) ? [setColumns(columns)] : []),
      setReceipt(kept),
      ...spent.map(dropReceipt),
      ...setChanges(number, changes, domains.changes()),
    ],
    info: { receipt: receiptWithoutShapes(window) },
  };
}

function receiptWithoutShapes({ receipt }: Window) {
  return { ...receipt, columns: receipt.columns.map(({ seen: _seen, ...column }) => column) };
}
