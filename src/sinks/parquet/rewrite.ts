import { eventColumns } from '../sql/files/columns.ts';
import { failureOf, folderFailure } from '../sql/files/folder-failure.ts';
import { sortedBy } from '../sql/files/order.ts';
import { FILE, readFiles, writeFile } from '../sql/files/parquet-file.ts';
import { createLeftOut, isLeftOut } from '../sql/people.ts';
import { type LeaveOut, type Rewritten, TABLES } from '../target.ts';
import { derive } from './commit/derived.ts';
import { metadataOf } from './commit/metadata.ts';
import { describe, filesAfter, moveOf, type Output, waitingPath } from './commit/outputs.ts';
import { type Dataset, type DatasetOptions, openExisting, WRITER } from './dataset/dataset.ts';
import { livePath, partitionOf } from './dataset/layout.ts';
import { eventFiles, type LiveFile, type Manifest } from './dataset/manifest.ts';
import { receiptsAfter } from './dataset/receipts.ts';

/** Encodes every partition anew and drops those without rows, one after the other, each atomically. Throws Failure. */
export function compactParquet(options: DatasetOptions): Promise<Rewritten> {
  return rewriteFolder(options, async (dataset) => eventFiles(dataset.manifest).map(({ path }) => path));
}

/**
 * Writes every file that has rows to leave out anew without them, one partition after the other, each atomically; their
 * bytes are then in no file. Throws Failure.
 */
export function purgeParquet(options: DatasetOptions & { readonly leaveOut: LeaveOut }): Promise<Rewritten> {
  const { leaveOut, dir } = options;
  const leftOut = ({ columns }: Manifest) => isLeftOut({ columns, place: dir }, leaveOut.column);
  return rewriteFolder(
    options,
    async (dataset) => {
      await createLeftOut(dataset.engine, leaveOut.values);
      return pathsWith(dataset, leftOut(dataset.manifest));
    },
    (manifest) => `NOT ${leftOut(manifest)}`,
  );
}

type Existing = Dataset & { readonly manifest: Manifest };

/** `choose`: the live files of `events` to write anew. `keep`: the condition that rows must meet. */
async function rewriteFolder(
  options: DatasetOptions,
  choose: (dataset: Existing) => Promise<readonly string[]>,
  keep: (manifest: Manifest) => string = () => 'true',
): Promise<Rewritten> {
  const dataset = await openExisting(options);
  const before = sizeOf(dataset.manifest);
  try {
    for (const path of await choose(dataset)) {
      const work = () => prepare(dataset, path, keep(dataset.manifest));
      await dataset.change(await dataset.prepare(work, options.signal));
    }
    const after = sizeOf(dataset.manifest);
    return {
      rows: after.rows,
      rowsLeftOut: before.rows - after.rows,
      bytesBefore: before.bytes,
      bytesAfter: after.bytes,
    };
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.dir);
  } finally {
    await dataset.close().catch((error) => {
      throw folderFailure(error, options.dir);
    });
  }
}

async function prepare(dataset: Existing, path: string, keep: string) {
  const { manifest } = dataset;
  const { columns } = manifest;
  const { date } = partitionOf(path);
  const metadata = metadataOf(columns, lastReceipt(manifest, path));
  const next = waitingPath(dataset, 'events', date);
  const rows = rowsOf(manifest, path);
  const kept = `SELECT ${eventColumns(columns)} FROM ${readFiles([dataset.pathOf(path)])} WHERE ${keep}`;
  const query = `${kept} ${dataset.isFrugal ? '' : sortedBy(columns, rows)}`;
  await writeFile(dataset, { query, rows }, next, metadata);
  const events: Output[] = [{ dataset: 'events', date, path: next }];
  const old = eventFiles(manifest);
  const derived = await derive({
    dataset,
    tables: manifest.tables,
    columns,
    metadata,
    old,
    events,
  });
  const outputs = [...events, ...derived];
  const described = await describe(dataset, outputs);
  const emptied = new Set(described[0].rows === 0 ? TABLES.map((name) => livePath(name, date)) : []);
  const files = filesAfter(manifest.files, described).filter((file) => !emptied.has(file.path));
  return {
    moves: outputs.filter((o) => !emptied.has(livePath(o.dataset, o.date))).map((output) => moveOf(dataset, output)),
    removes: manifest.files.filter((file) => emptied.has(file.path)).map((file) => file.path),
    manifest: { ...manifest, writer: WRITER, files, receipts: receiptsAfter(manifest.receipts, files) },
  };
}

const rowsOf = (manifest: Manifest, path: string): number =>
  manifest.files.find((file) => file.path === path)?.rows ?? 0;

function lastReceipt(manifest: Manifest, path: string) {
  const windows = manifest.files.find((file) => file.path === path)?.windows ?? {};
  const last = Math.max(0, ...Object.keys(windows).map(Number));
  return manifest.receipts.find(({ window }) => window === last);
}

async function pathsWith(dataset: Existing, condition: string): Promise<string[]> {
  const paths = new Map(eventFiles(dataset.manifest).map(({ path }) => [dataset.pathOf(path), path]));
  if (paths.size === 0) return [];
  const rows = await dataset.engine.rows(
    `SELECT DISTINCT ${FILE} AS path FROM ${readFiles([...paths.keys()], true)} WHERE ${condition}`,
  );
  return rows.flatMap((row) => paths.get(String(row.path)) ?? []).sort();
}

function sizeOf({ files }: Manifest): { readonly rows: number; readonly bytes: number } {
  const sum = (list: readonly LiveFile[], key: 'rows' | 'bytes') => list.reduce((total, file) => total + file[key], 0);
  const events = files.filter(({ path }) => partitionOf(path).dataset === 'events');
  return { rows: sum(events, 'rows'), bytes: sum(files, 'bytes') };
}
