import { TABLES } from '../../table/columns.ts';
import { eventColumns } from '../sql/files/columns.ts';
import { failureOf, folderFailure } from '../sql/files/folder-failure.ts';
import { sortedBy } from '../sql/files/order.ts';
import { readFiles, writeFile } from '../sql/files/parquet-file.ts';
import type { Rewritten } from '../target.ts';
import { derive } from './commit/derived.ts';
import { metadataOf } from './commit/metadata.ts';
import { describe, filesAfter, moveOf, type Output, waitingPath } from './commit/outputs.ts';
import { type Change, type Dataset, type DatasetOptions, openExisting, WRITER } from './dataset/dataset.ts';
import { livePath, partitionOf } from './dataset/layout.ts';
import { eventFiles, type LiveFile, type Manifest } from './dataset/manifest.ts';
import { receiptsAfter } from './dataset/receipts.ts';

export type Existing = Dataset & { readonly manifest: Manifest };

/** Which partitions are rewritten, and how. */
interface Rewrite {
  /** The live files of `events` to rewrite. */
  choose(dataset: Existing): Promise<readonly string[]>;
  /** The condition that rows must meet. */
  keep(manifest: Manifest): string;
  /** Checks the files that a change would replace, before it does; throws Failure. */
  check?(dataset: Existing, change: Change): Promise<void>;
}

/** Rewrites every partition and removes those without rows, one after the other, each atomically. Throws Failure. */
export function compactParquet(options: DatasetOptions): Promise<Rewritten> {
  return rewriteFolder(options, {
    choose: async (dataset) => eventFiles(dataset.manifest).map(({ path }) => path),
    keep: () => 'true',
  });
}

/** Rewrites partitions one after the other, each atomically. Throws Failure. */
export function rewriteFolder(options: DatasetOptions, { choose, keep, check }: Rewrite): Promise<Rewritten> {
  return withExisting(options, async (dataset) => {
    const before = sizeOf(dataset.manifest);
    const files = await choose(dataset);
    for (const path of files) {
      const work = () => prepareRewrite(dataset, path, keep(dataset.manifest));
      const change = await dataset.prepare(work, options.signal);
      await check?.(dataset, change);
      await dataset.change(change);
    }
    const after = sizeOf(dataset.manifest);
    return {
      rows: after.rows,
      rowsRemoved: before.rows - after.rows,
      files,
      bytesBefore: before.bytes,
      bytesAfter: after.bytes,
    };
  });
}

/** Runs work on an existing folder of datasets, as its only writer. Throws Failure. */
export async function withExisting<T>(options: DatasetOptions, work: (dataset: Existing) => Promise<T>): Promise<T> {
  const dataset = await openExisting(options);
  try {
    return await work(dataset);
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.dir);
  } finally {
    await dataset.close().catch((error) => {
      throw folderFailure(error, options.dir);
    });
  }
}

/** Writes the rows of a partition that meet a condition, and what follows from them, beside the old files. */
export async function prepareRewrite(dataset: Existing, path: string, keep: string): Promise<Change> {
  const { manifest } = dataset;
  const { columns } = manifest;
  const { date } = partitionOf(path);
  const metadata = metadataOf(columns, lastReceipt(manifest, path));
  const next = waitingPath(dataset, 'events', date);
  const rows = rowsOf(manifest, path);
  const kept = `SELECT ${eventColumns(columns)} FROM ${readFiles([dataset.pathOf(path)])} WHERE ${keep}`;
  const query = `${kept} ${dataset.isLowOnMemory ? '' : sortedBy(columns, rows)}`;
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
  // Stryker disable next-line ArrayDeclaration: a further name is that of no file
  const emptied = new Set(described[0].rows === 0 ? TABLES.map((name) => livePath(name, date)) : []);
  const files = filesAfter(manifest.files, described).filter((file) => !emptied.has(file.path));
  return {
    // Stryker disable next-line MethodExpression: what is emptied is removed after the moves
    moves: outputs.filter((o) => !emptied.has(livePath(o.dataset, o.date))).map((output) => moveOf(dataset, output)),
    removes: manifest.files.filter((file) => emptied.has(file.path)).map((file) => file.path),
    manifest: { ...manifest, writer: WRITER, files, receipts: receiptsAfter(manifest.receipts, files) },
  };
}

const rowsOf = (manifest: Manifest, path: string): number =>
  // Stryker disable next-line OptionalChaining: the path is that of a file in the manifest; this is for the compiler
  manifest.files.find((file) => file.path === path)?.rows ?? 0;

function lastReceipt(manifest: Manifest, path: string) {
  const windows = manifest.files.find((file) => file.path === path)?.windows ?? {};
  const last = Math.max(0, ...Object.keys(windows).map(Number));
  return manifest.receipts.find(({ window }) => window === last);
}

function sizeOf({ files }: Manifest): { readonly rows: number; readonly bytes: number } {
  const sum = (list: readonly LiveFile[], key: 'rows' | 'bytes') => list.reduce((total, file) => total + file[key], 0);
  const events = files.filter(({ path }) => partitionOf(path).dataset === 'events');
  return { rows: sum(events, 'rows'), bytes: sum(files, 'bytes') };
}
