import { configFailure } from '../../base/errors.ts';
import { isTyped } from '../duckdb/alter.ts';
import type { LeaveOut, Rewrite } from '../duckdb/rewrite.ts';
import { identifier, textLiteral } from '../duckdb/sql.ts';
import { eventColumns, typedColumns } from './columns.ts';
import { eventFiles } from './commit.ts';
import { FILE, readFiles, writeFile } from './copy.ts';
import { type Dataset, type DatasetOptions, openExisting, WRITER } from './dataset.ts';
import { derive } from './derived.ts';
import { failureOf, folderFailure } from './faults.ts';
import { DATASETS, livePath, partitionOf } from './layout.ts';
import type { LiveFile, Manifest } from './manifest.ts';
import { metadataOf } from './metadata.ts';
import { sortedBy } from './order.ts';
import { describe, filesAfter, moveOf, type Output, waitingPath } from './outputs.ts';
import { receiptsAfter } from './receipts.ts';

/** Encodes every partition anew and drops those without rows, one after the other, each atomically. Throws Failure. */
export function compactParquet(options: DatasetOptions): Promise<Rewrite> {
  return rewriteFolder(options, async (dataset) => eventFiles(dataset.manifest).map(({ path }) => path));
}

/**
 * Writes every file that has rows to leave out anew without them, one partition after the other, each atomically; their
 * bytes are then in no file. Throws Failure.
 */
export function purgeParquet(options: DatasetOptions & { readonly leaveOut: LeaveOut }): Promise<Rewrite> {
  const { leaveOut } = options;
  return rewriteFolder(
    options,
    async (dataset) => {
      await dataset.engine.run(`CREATE OR REPLACE TEMP TABLE ${LEFT_OUT} (value VARCHAR)`);
      await dataset.engine.run(`INSERT INTO temp.${LEFT_OUT} SELECT unnest(from_json($1, '["VARCHAR"]'))`, [
        JSON.stringify(leaveOut.values),
      ]);
      return pathsWith(dataset, leftOut(dataset.manifest, leaveOut));
    },
    (manifest) => `NOT (${leftOut(manifest, leaveOut)})`,
  );
}

type Existing = Dataset & { readonly manifest: Manifest };
const LEFT_OUT = '_dfinery_left_out';

/** `choose`: the live files of `events` to write anew. `keep`: the condition that rows must meet. */
async function rewriteFolder(
  options: DatasetOptions,
  choose: (dataset: Existing) => Promise<readonly string[]>,
  keep: (manifest: Manifest) => string = () => 'true',
): Promise<Rewrite> {
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
  const query = `${kept} ${dataset.isFrugal ? '' : sortedBy(typedColumns(columns), rows)}`;
  await writeFile(dataset, { query, rows }, next, metadata);
  const events: Output[] = [{ dataset: 'events', date, path: next }];
  const old = eventFiles(manifest);
  const derived = await derive({
    dataset,
    tables: manifest.tables,
    columns,
    metadata,
    eventNames: manifest.event_names,
    old,
    events,
  });
  const outputs = [...events, ...derived];
  const described = await describe(dataset, outputs);
  const emptied = new Set(described[0].rows === 0 ? DATASETS.map((name) => livePath(name, date)) : []);
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

/** TRUE for a row to leave out: its cell, typed or rescued, is one of the values; never NULL. */
function leftOut({ columns }: Manifest, { column: source }: LeaveOut): string {
  const column = columns.filter(isTyped).find((c) => c.source === source);
  if (column === undefined) throw configFailure(`the folder has no column ${source}: nothing was done.`);
  const pointer = textLiteral(`/${source.replaceAll('~', '~0').replaceAll('/', '~1')}`);
  const texts = [`CAST(${identifier(column.name)} AS VARCHAR)`, `json_extract_string(_rescued, ${pointer})`];
  const among = texts.map((text) => `coalesce(${text} IN (SELECT value FROM temp.${LEFT_OUT}), false)`);
  return `(${among.join(' OR ')})`;
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
