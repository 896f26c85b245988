import type { Window } from '../../../extract/window.ts';
import { changeRecords, columnChanges, missedIn } from '../../../table/changes.ts';
import { incomingColumns } from '../../../table/incoming.ts';
import { type PlannedColumn, planColumns, type Rules } from '../../../table/plan.ts';
import { lastWindow, storedReceipt } from '../../../table/receipts.ts';
import { applyBatch, type TableState } from '../../../table/state.ts';
import type { Zone } from '../../../types/zone.ts';
import type { Commit } from '../../sink.ts';
import type { Engine } from '../engine/engine.ts';
import { eventNamesOf } from './event-names.ts';
import type { WindowLoad } from './file-query.ts';
import { rescuedOfBatch } from './rescued.ts';

/** What a batch of windows does to the columns of a place, and how the rows of each window are read. */
export interface PlannedBatch {
  /** True if nothing was committed before it. */
  readonly isFirst: boolean;
  readonly plan: readonly PlannedColumn[];
  /** In the order of the windows. */
  readonly loads: readonly WindowLoad[];
}

/** Plans windows that one plan of columns serves. `columnsOf`: those of the plan that the rows of the batch have, by their keys. */
export function planBatch(
  { columns, receipts }: TableState,
  windows: readonly Window[],
  rules: Rules,
  zone: Zone | undefined,
  columnsOf = (plan: readonly PlannedColumn[]) => new Map(plan.map((column) => [column.key, column])),
): PlannedBatch {
  const isFirst = receipts.length === 0;
  const first = lastWindow(receipts) + 1;
  const all = incomingColumns(windows.flatMap(({ files }) => files));
  const plan = planColumns(columns, all.columns, rules, isFirst);
  const own = columnsOf(plan);
  const loads = windows.map((window, i): WindowLoad => {
    return { window, number: first + i, incoming: incomingColumns(window.files), plan: own, zone };
  });
  return { isFirst, plan, loads };
}

/** What storing the rows of a batch has brought about. */
export interface StoredRows {
  /** The relation of its rows; undefined if it has none. */
  readonly rows: string | undefined;
  /** Rows whose key has a number, because another row has their id, by window. */
  readonly idRepeats: ReadonlyMap<number, number>;
  /** Rows that are there after the batch, by the window that last wrote them. */
  readonly live: ReadonlyMap<number, number>;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** The state after a batch whose rows are stored, and what its commit changes. */
export async function settleBatch(
  engine: Engine,
  before: TableState,
  { isFirst, plan, loads }: PlannedBatch,
  { rows, idRepeats, live, now }: StoredRows,
): Promise<{ readonly state: TableState; readonly commit: Commit }> {
  const windows = loads.map(({ window }) => window);
  const receipts = loads.map(({ window: { receipt }, number }) =>
    storedReceipt(receipt, number, idRepeats.get(number) ?? 0),
  );
  const changes = changeRecords(plan, {
    windows: loads.map(({ window, incoming: { columns } }) => ({ id: window.receipt.id, columns })),
    changedAt: new Date(now).toISOString(),
    isFirst,
    missed: missedIn(before.changes),
  });
  const rescued = await rescuedOfBatch(engine, rows, plan);
  const state = applyBatch(before, {
    columns: plan,
    receipts,
    eventNames: await eventNamesOf(engine, windows, rows, plan),
    cursor: windows[windows.length - 1].state,
    changes,
    live,
  });
  const commit = {
    windows: windows.length,
    rows: receipts.reduce((sum, receipt) => sum + receipt.rows, 0),
    ...columnChanges(plan, isFirst),
    rescued,
    idRepeats: [...idRepeats.values()].reduce((sum, n) => sum + n, 0),
  };
  return { state, commit };
}
