import type { Window } from '../../extract/window.ts';
import { EVENT_NAME } from '../../schema/groups.ts';
import type { Zone } from '../../types/zone.ts';
import { arrivalsOf } from '../duckdb/arrivals.ts';
import { FIRST_COLUMNS, type StoredColumn } from '../duckdb/columns.ts';
import { type PlannedColumn, planColumns, type Rules } from '../duckdb/plan.ts';
import { hasRowsWithoutId, type Load } from '../duckdb/source.ts';
import { nameOf } from '../duckdb/views.ts';
import type { Commit } from '../sink.ts';
import { readFiles } from './copy.ts';
import { type Change, type Dataset, WRITER } from './dataset.ts';
import { derive } from './derived.ts';
import { writeFresh } from './fresh.ts';
import type { DatasetName } from './layout.ts';
import type { LiveFile, Manifest } from './manifest.ts';
import { mergeWindow } from './merge.ts';
import { metadataOf } from './metadata.ts';
import { namesOf } from './order.ts';
import { describe, filesAfter, moveOf, type Output } from './outputs.ts';
import { liveReceipt, nextWindow, receiptsAfter } from './receipts.ts';

/** Event names remembered, for days that must be split. */
const MOST_EVENT_NAMES = 10_000;

/** What a run brings besides its windows. */
export interface Settings {
  readonly rules: Rules;
  readonly zone: Zone | undefined;
  readonly tables: readonly DatasetName[];
}

/** A window's change, ready to be carried out, and what there is to tell of it. */
export interface Prepared {
  readonly change: Change;
  readonly commit: Commit;
  readonly plan: readonly PlannedColumn[];
}

export function emptyManifest({ zone, tables }: Settings): Manifest {
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

export const eventFiles = (manifest: Manifest): LiveFile[] =>
  manifest.files.filter((file) => file.path.startsWith('events/'));

/** Writes every file that a window changes, beside the live ones. Inside a transaction; nothing live is touched. */
export async function prepareWindow(dataset: Dataset, window: Window, settings: Settings): Promise<Prepared> {
  const manifest = dataset.manifest ?? emptyManifest(settings);
  const number = nextWindow(manifest);
  const { zone, rules } = settings;
  const arrivals = arrivalsOf(window.files);
  const plan = planColumns(manifest.columns, arrivals.columns, rules, number === 1);
  const load: Load = { window, number, arrivals, plan: new Map(plan.map((c) => [c.key, c])), zone };
  const receipt = liveReceipt(window.receipt, number);
  const metadata = metadataOf(plan, receipt);
  const fresh = await writeFresh(dataset, load, metadata);
  const paths = fresh.map((one) => one.path);
  const incoming = { paths, columns: plan, hasRowsWithoutId: hasRowsWithoutId(load) };
  const eventNames = await eventNamesAfter(dataset, manifest, window, paths, plan);
  const old = eventFiles(manifest);
  const merged = await mergeWindow({ dataset, plan, zone, number, metadata, old, fresh, incoming, eventNames });
  const rescued = await rescuedCounts(dataset, paths, plan);
  const events = lastOf([...merged.reshaped, ...merged.reduced, ...merged.final]);
  const derived = await derive({ dataset, tables: manifest.tables, columns: plan, metadata, eventNames, old, events });
  const files = filesAfter(manifest.files, await describe(dataset, [...events, ...derived]));
  for (const waiting of merged.reduced.filter((output) => !events.includes(output))) await describe(dataset, [waiting]);
  const outputs = [...merged.reshaped, ...merged.reduced, ...merged.final, ...derived];
  const columnsAdded = plan.filter((c) => c.type !== null && (c.before === null || number === 1)).map((c) => c.name);
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
    commit: { rows: window.receipt.rows, columnsAdded, rescued },
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

/** Cells of the window that went to `_rescued`, by source column. */
async function rescuedCounts(
  dataset: Dataset,
  paths: readonly string[],
  plan: readonly PlannedColumn[],
): Promise<Map<string, number>> {
  if (paths.length === 0 || plan.every((column) => column.isClean && !column.isRefused)) return new Map();
  const rows = await dataset.engine.rows(
    `SELECT key, count(*) AS n FROM (SELECT unnest(json_keys(_rescued)) AS key FROM ${readFiles(paths)}
    WHERE _rescued IS NOT NULL) GROUP BY key ORDER BY key`,
  );
  return new Map(rows.map((row) => [String(row.key), Number(row.n)]));
}

async function eventNamesAfter(
  dataset: Dataset,
  manifest: Manifest,
  window: Window,
  paths: readonly string[],
  plan: readonly StoredColumn[],
): Promise<string[]> {
  const names = new Set(manifest.event_names);
  const found = namesOf(window.files) ?? (await namesIn(dataset, paths, plan));
  for (const name of found) if (names.size < MOST_EVENT_NAMES) names.add(name);
  return [...names].sort();
}

async function namesIn(dataset: Dataset, paths: readonly string[], plan: readonly StoredColumn[]): Promise<string[]> {
  if (paths.length === 0) return [];
  const name = `CAST(${nameOf(plan, EVENT_NAME)} AS VARCHAR)`;
  const rows = await dataset.engine.rows(
    `SELECT DISTINCT ${name} AS name FROM ${readFiles(paths)} WHERE ${name} IS NOT NULL ORDER BY 1 LIMIT ${MOST_EVENT_NAMES}`,
  );
  return rows.map((row) => String(row.name));
}
