import { zoneOf } from '../../cells/types/zone.ts';
import { hasDuplicateOrMissingIds, type Window } from '../../extract/window.ts';
import { changeRecords, columnChanges } from '../../table/changes.ts';
import { incomingColumns } from '../../table/incoming.ts';
import { type PlannedColumn, planColumns, type Rules } from '../../table/plan.ts';
import { lastWindowNumber, storedReceipt } from '../../table/receipts.ts';
import { applyBatch, scannedEventNames, type TableState } from '../../table/state.ts';
import type { Commit } from '../../targets/sink.ts';
import type { Engine } from '../session/engine.ts';
import { eventNamesIn, rescuedOfBatch } from './counts.ts';
import { hasRowsWithoutId, type WindowLoad } from './file-query.ts';
import type { RereadBatch } from './superseded.ts';

/** A planned batch: the columns of the place after it, and how the rows of each window are read. */
export interface PlannedBatch extends RereadBatch {
  /** True if nothing was committed before the batch. */
  readonly isFirst: boolean;
  readonly columns: readonly PlannedColumn[];
  readonly loads: readonly WindowLoad[];
}

/**
 * Plans windows that one plan of columns serves. `columnsOf` chooses the columns of the plan that the rows of the batch
 * have.
 */
export function planBatch(
  { columns: stored, receipts }: TableState,
  windows: readonly Window[],
  rules: Rules,
  columnsOf = (plan: readonly PlannedColumn[]) => plan,
): PlannedBatch {
  const isFirst = receipts.length === 0;
  const first = lastWindowNumber(receipts) + 1;
  const zone = zoneOf(rules.timezone);
  const all = incomingColumns(windows.flatMap(({ files }) => files));
  const columns = planColumns(stored, all.columns, rules, { isFirst });
  const planned = new Map(columnsOf(columns).map((column) => [column.key, column]));
  const loads = windows.map((window, i): WindowLoad => {
    return { window, windowNumber: first + i, incoming: incomingColumns(window.files), planned, zone };
  });
  return {
    isFirst,
    columns,
    loads,
    zone,
    windows: loads.map(({ window: { receipt, state }, windowNumber }) => {
      const { from, to } = receipt;
      return { windowNumber, from, to, isExclusive: state.ranges_inclusive === false };
    }),
    liveWindows: receipts
      .filter((receipt) => receipt.rows_live > 0)
      .map(({ window, from, to }) => ({ windowNumber: window, from, to })),
    hasRowsWithoutId: loads.some(hasRowsWithoutId),
    hasDuplicateOrMissingIds: windows.some(hasDuplicateOrMissingIds),
  };
}

export interface StoredRows {
  /** SQL of the rows of the batch, as it may stand after FROM; undefined if it has none. */
  readonly rows: string | undefined;
  /** Number of rows by window whose key has a number, because another row has their id. */
  readonly idRepeats: ReadonlyMap<number, number>;
  /** Number of rows that are there after the batch, by the window that wrote them last. */
  readonly liveRows: ReadonlyMap<number, number>;
  /** Time of the commit (ms since 1970). */
  readonly now: number;
}

/** Gives the state after a batch whose rows are stored, and the changes that its commit makes. */
export async function finishBatch(
  engine: Engine,
  before: TableState,
  { isFirst, columns, loads }: PlannedBatch,
  { rows, idRepeats, liveRows, now }: StoredRows,
): Promise<{ readonly state: TableState; readonly commit: Commit }> {
  const windows = loads.map(({ window }) => window);
  const receipts = loads.map(({ window: { receipt }, windowNumber }) =>
    storedReceipt(receipt, windowNumber, idRepeats.get(windowNumber) ?? 0),
  );
  const changing = loads.map(({ window, incoming }) => ({ receiptId: window.receipt.id, columns: incoming.columns }));
  const changedAt = new Date(now).toISOString();
  const changes = changeRecords(columns, changing, { changedAt, isFirst, earlier: before.changes });
  const rescued = await rescuedOfBatch(engine, rows, columns);
  const scanned = scannedEventNames(windows.flatMap(({ files }) => files));
  const state = applyBatch(before, {
    columns,
    receipts,
    eventNames: scanned ?? (rows === undefined ? [] : await eventNamesIn(engine, rows, columns)),
    exportState: windows[windows.length - 1].state,
    changes,
    liveRows,
  });
  const commit = {
    windows: windows.length,
    rows: receipts.reduce((sum, receipt) => sum + receipt.rows, 0),
    ...columnChanges(columns, isFirst),
    rescued,
    idRepeats: [...idRepeats.values()].reduce((sum, n) => sum + n, 0),
  };
  return { state, commit };
}
