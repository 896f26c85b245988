// This folder: how a window becomes files of the datasets.

import type { Window } from '../../../extract/window.ts';
import { EVENT_NAME } from '../../../schema/groups.ts';
import { columnChanges } from '../../../table/changes.ts';
import { FIRST_COLUMNS, type StoredColumn, type TableName } from '../../../table/columns.ts';
import { incomingColumns } from '../../../table/incoming.ts';
import { type PlannedColumn, planColumns, type Rules } from '../../../table/plan.ts';
import { overlapOf } from '../../../table/receipts.ts';
import { MAX_EVENT_NAMES, scannedEventNames } from '../../../table/state.ts';
import type { Zone } from '../../../types/zone.ts';
import type { Commit } from '../../sink.ts';
import { readFiles } from '../../sql/files/parquet-file.ts';
import { writeWindowFiles } from '../../sql/files/window-files.ts';
import { hasRowsWithoutId, type WindowLoad } from '../../sql/rows/file-query.ts';
import { rescuedCounts } from '../../sql/rows/rescued.ts';
import { nameOf } from '../../sql/views.ts';
import { type Change, type Dataset, WRITER } from '../dataset/dataset.ts';
import { eventFiles, type Manifest } from '../dataset/manifest.ts';
import { liveReceipt, liveWindows, nextWindow, receiptsAfter } from '../dataset/receipts.ts';
import { derive } from './derived.ts';
import { mergeWindow } from './merge.ts';
import { metadataOf } from './metadata.ts';
import { describe, filesAfter, moveOf, type Output } from './outputs.ts';

/** What a run brings besides its windows. */
export interface Settings {
  readonly rules: Rules;
  readonly zone: Zone | undefined;
  readonly tables: readonly TableName[];
}

/** A window's change, ready to be carried out, and what there is to tell of it. */
export interface Prepared {
  readonly change: Change;
  readonly commit: Commit;
  readonly plan: readonly PlannedColumn[];
}

function emptyManifest({ zone, tables }: Settings): Manifest {
  return {
    v: 1,
    writer: WRITER,
    timezone: zone?.name ?? null,
    tables,
    columns: FIRST_COLUMNS,
    files: [],
    receipts: [],
    event_names: [],
    state: null,
  };
}

/** Writes every file that a window changes, beside the live ones. Inside a transaction; nothing live is touched. */
export async function prepareWindow(dataset: Dataset, window: Window, settings: Settings): Promise<Prepared> {
  const manifest = dataset.manifest ?? emptyManifest(settings);
  const number = nextWindow(manifest);
  const { zone, rules } = settings;
  const arrivals = incomingColumns(window.files);
  const plan = planColumns(manifest.columns, arrivals.columns, rules, number === 1);
  const load: WindowLoad = { window, number, arrivals, plan: new Map(plan.map((c) => [c.key, c])), zone };
  const metadata = metadataOf(plan, { ...window.receipt, window: number });
  const { engine, isLowOnMemory, places } = dataset;
  const into = { engine, isLowOnMemory, folder: places.temporary, place: places.root };
  const added = await writeWindowFiles(into, load, metadata);
  const paths = added.map((one) => one.path);
  const overlap = overlapOf(liveWindows(manifest), window.receipt, window.state.ranges_inclusive === false);
  const incoming = { files: added, columns: plan, hasRowsWithoutId: hasRowsWithoutId(load), overlap, zone };
  const eventNames = await eventNamesAfter(dataset, manifest, window, paths, plan);
  const old = eventFiles(manifest);
  const merged = await mergeWindow({ dataset, plan, zone, number, metadata, old, incoming });
  const receipt = liveReceipt(window.receipt, number, merged.idRepeats);
  const rescued = await rescuedCounts(engine, paths.length === 0 ? undefined : readFiles(paths), plan);
  const events = lastOf([...merged.reshaped, ...merged.reduced, ...merged.final]);
  const derived = await derive({ dataset, tables: manifest.tables, columns: plan, metadata, old, events });
  const files = filesAfter(manifest.files, await describe(dataset, [...events, ...derived]));
  for (const waiting of merged.reduced.filter((output) => !events.includes(output))) await describe(dataset, [waiting]);
  const outputs = [...merged.reshaped, ...merged.reduced, ...merged.final, ...derived];
  return {
    change: {
      moves: outputs.map((output) => moveOf(dataset, output)),
      manifest: {
        ...manifest,
        writer: WRITER,
        columns: plan.map(storedColumn),
        files,
        receipts: receiptsAfter([...manifest.receipts, receipt], files),
        event_names: eventNames,
        state: window.state,
      },
    },
    commit: { rows: window.receipt.rows, ...columnChanges(plan, number === 1), rescued, idRepeats: merged.idRepeats },
    plan,
  };
}

/** Of several files for one partition the last: the one that stays. */
function lastOf(outputs: readonly Output[]): Output[] {
  return [...new Map(outputs.map((output) => [output.date, output])).values()];
}

function storedColumn(column: PlannedColumn): StoredColumn {
  const { source, occurrence, name, itemName, group, type, evidence, position, firstShape } = column;
  return { source, occurrence, name, itemName, group, type, evidence, position, firstShape };
}

async function eventNamesAfter(
  dataset: Dataset,
  manifest: Manifest,
  window: Window,
  paths: readonly string[],
  plan: readonly StoredColumn[],
): Promise<string[]> {
  const names = new Set(manifest.event_names);
  const found = scannedEventNames(window.files) ?? (await namesIn(dataset, paths, plan));
  for (const name of found) if (names.size < MAX_EVENT_NAMES) names.add(name);
  return [...names].sort();
}

async function namesIn(dataset: Dataset, paths: readonly string[], plan: readonly StoredColumn[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const name = `CAST(${nameOf(plan, EVENT_NAME)} AS VARCHAR)`;
  const rows = await dataset.engine.rows(
    `SELECT DISTINCT ${name} AS name FROM ${readFiles(paths)} WHERE ${name} IS NOT NULL ORDER BY 1 LIMIT ${MAX_EVENT_NAMES}`,
  );
  return rows.map((row) => String(row.name));
}
