import type { PlannedColumn } from '../../../table/plan.ts';
import type { Zone } from '../../../types/zone.ts';
import { eventColumns, isReshaped, reshaped } from '../../sql/files/columns.ts';
import { type Metadata, readFiles, writeFile } from '../../sql/files/parquet-file.ts';
import { findReplaced, type Incoming, movesOf, type Replaced } from '../../sql/files/replaced.ts';
import type { WindowFile } from '../../sql/files/window-files.ts';
import type { Dataset } from '../dataset/dataset.ts';
import { livePath, partitionOf } from '../dataset/layout.ts';
import type { LiveFile } from '../dataset/manifest.ts';
import { type Output, waitingPath } from './outputs.ts';

/** The rows of a window on their way into the files of the dataset. */
export interface Merge {
  readonly dataset: Dataset;
  readonly plan: readonly PlannedColumn[];
  readonly zone: Zone | undefined;
  readonly number: number;
  readonly metadata: Metadata;
  /** Live files of `events`. */
  readonly old: readonly LiveFile[];
  readonly incoming: Incoming;
}

/** A merge once it is known which rows of the files the window reads again. */
interface Known extends Merge {
  readonly replaced: Replaced;
}

/** The files of `events` to put in place, in this order. */
export interface Merged {
  /** Same rows, other columns (S30). */
  readonly reshaped: readonly Output[];
  /** Files that lose rows to other dates and gain none yet: before anything is added anywhere (S29). */
  readonly reduced: readonly Output[];
  readonly final: readonly Output[];
  /** Rows of the window whose key has a number, because another row has their id. */
  readonly idRepeats: number;
}

/** One date on which something happens. */
interface Partition {
  readonly date: string;
  readonly old: LiveFile | undefined;
  readonly added: WindowFile | undefined;
  /** Rows of the old file that the window replaces. */
  readonly replaced: number;
}

/** Writes every file of `events` that the window changes. Inside a transaction. */
export async function mergeWindow(request: Merge): Promise<Merged> {
  const { dataset, old, incoming, metadata } = request;
  const paths = old.map((file) => dataset.pathOf(file.path));
  const merge = { ...request, replaced: await findReplaced(dataset, paths, incoming, metadata) };
  const partitions = partitionsOf(merge);
  const touched = partitions.filter(({ added, replaced }) => added !== undefined || replaced > 0);
  const shape: Output[] = [];
  if (isReshaped(merge.plan)) {
    for (const partition of partitions.filter((one) => !touched.includes(one))) {
      shape.push(await rewrite(merge, partition, 'next', false));
    }
  }
  const reduced: Output[] = [];
  for (const partition of await partitionsThatGive(merge, touched))
    reduced.push(await rewrite(merge, partition, 'less', true));
  const final: Output[] = [];
  for (const partition of touched) {
    const { added } = partition;
    if (added === undefined) reduced.push(await rewrite(merge, partition, 'next', true));
    else final.push(await renew(merge, partition, added));
  }
  return { reshaped: shape, reduced, final, idRepeats: merge.replaced.idRepeats };
}

function partitionsOf({ dataset, old, replaced: { counts, files } }: Known): Partition[] {
  const byDate = new Map(old.map((file) => [partitionOf(file.path).date, file]));
  const dates = [...new Set([...byDate.keys(), ...files.map(({ date }) => date)])].sort();
  return dates.map((date) => {
    const file = byDate.get(date);
    const count = file === undefined ? 0 : (counts.get(dataset.pathOf(file.path)) ?? 0);
    return { date, old: file, added: files.find((one) => one.date === date), replaced: count };
  });
}

/**
 * Partitions that gain rows and lose some to other dates: those must be gone before the others show them, so such a
 * partition is replaced twice.
 */
async function partitionsThatGive(merge: Known, touched: readonly Partition[]): Promise<Partition[]> {
  const { dataset, plan, replaced } = merge;
  const losing = touched.filter((one) => one.replaced > 0);
  const candidates = losing.filter((one) => one.added !== undefined && touched.some((other) => other !== one));
  if (candidates.length === 0) return [];
  const dateOf = new Map(replaced.files.map(({ date, path }) => [path, date] as const));
  const paths = new Map(candidates.map((one) => [dataset.pathOf(livePath('events', one.date)), one]));
  const moves = await movesOf(dataset.engine, [...paths.keys()], replaced, plan);
  const giving = moves.flatMap(({ from, to }) => {
    const partition = paths.get(from);
    return partition === undefined || dateOf.get(to) === partition.date ? [] : partition;
  });
  return candidates.filter((one) => giving.includes(one));
}

/** The old rows of a partition under the new columns, without those that the window replaces. */
async function rewrite(merge: Known, partition: Partition, stage: string, drops: boolean): Promise<Output> {
  const rows = (partition.old?.rows ?? 0) - (drops ? partition.replaced : 0);
  const path = await put(merge, partition.date, stage, oldRows(merge, partition, drops), rows);
  return { dataset: 'events', date: partition.date, path, windows: drops ? undefined : partition.old?.windows };
}

/** The partition with its new rows; when none of the old ones stay, the file is there already. */
async function renew(merge: Known, partition: Partition, added: WindowFile): Promise<Output> {
  const { plan, number } = merge;
  const { date, old, replaced } = partition;
  const kept = (old?.rows ?? 0) - replaced;
  if (kept === 0) return { dataset: 'events', date, path: added.path, windows: { [number]: added.rows } };
  const news = `SELECT ${eventColumns(plan)} FROM ${readFiles([added.path])}`;
  const all = `${oldRows(merge, partition, replaced > 0)} UNION ALL ${news}`;
  return { dataset: 'events', date, path: await put(merge, date, 'next', all, kept + added.rows) };
}

async function put(merge: Known, date: string, stage: string, query: string, rows: number): Promise<string> {
  const { dataset, metadata } = merge;
  const path = waitingPath(dataset, 'events', date, stage);
  await writeFile(dataset, { query, rows }, path, metadata);
  return path;
}

function oldRows({ dataset, plan, zone, replaced }: Known, { date }: Partition, drops: boolean): string {
  const files = readFiles([dataset.pathOf(livePath('events', date))]);
  const where = drops ? ` WHERE ${replaced.isKept}` : '';
  return `SELECT ${isReshaped(plan) ? reshaped(plan, zone) : eventColumns(plan)} FROM ${files}${where}`;
}
