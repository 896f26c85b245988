import { groupBy } from '../../base/group.ts';
import { receiptsWith } from '../../table/receipts.ts';
import type { RewriteResult } from '../maintenance.ts';
import { type DataFile, liveRows, type NewFile } from './data-file.ts';
import { derive } from './derive.ts';
import { columnsIn, eventRows, sortedBy, withUnloggedColumns } from './file-columns.ts';
import { type FileTable, withTable } from './file-table.ts';
import type { FilesFormat, OpenFilesOptions } from './files-format.ts';
import { FILE, ROW_GROUP_ROWS } from './parquet-file.ts';
import { type ChangedFiles, type FileChange, filesAfter } from './table-log.ts';

/** Maximum size of the files that one commit replaces in an object store, since the spool folder must hold them. */
const BATCH_BYTES = 1024 * 1024 * 1024;

/** Merges the files of each date into one sorted file, and removes those without rows. Throws UserError. */
export function compactFiles(format: FilesFormat, options: OpenFilesOptions): Promise<RewriteResult> {
  return withTable(format, options, 'rewrite', async (table) => {
    const before = sizeOf(table);
    const batches = batchesOf(table);
    for (const batch of batches) {
      options.signal?.throwIfAborted();
      await table.commit(await table.engine.transaction(() => compactBatch(table, batch), options.signal));
    }
    return resultOf(table, before, batches.flat());
  });
}

/** The groups of files that one commit compacts; the files of a date are in the same group. */
function batchesOf(table: FileTable): DataFile[][] {
  const maxBytes = table.storage.workFolder === undefined ? BATCH_BYTES : Number.POSITIVE_INFINITY;
  const batches: DataFile[][] = [];
  let bytes = 0;
  for (const group of groupBy(table.filesOf('events'), ({ date }) => date).values()) {
    if (!shrinks(group)) continue;
    const own = group.reduce((sum, file) => sum + file.bytes, 0);
    if (batches.length === 0 || bytes + own > maxBytes) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(...group);
    bytes += own;
  }
  return batches;
}

function shrinks(group: readonly DataFile[]): boolean {
  const [first] = group;
  return group.length > 1 || first.rows === 0 || (first.rows > ROW_GROUP_ROWS && !first.isSorted);
}

async function compactBatch(table: FileTable, batch: readonly DataFile[]): Promise<FileChange> {
  const { columns } = table.snapshot.state;
  const fetched = (await table.fetch(batch)).filter(({ rows }) => rows > 0);
  const filled = await withUnloggedColumns(table.engine, fetched, columns);
  const added: NewFile[] = [];
  for (const [date, group] of groupBy(filled, (file) => file.date)) {
    const own = columnsIn(columns, new Set(group.flatMap((file) => [...file.columns])));
    const rows = group.reduce((sum, file) => sum + file.rows, 0);
    const isSorted = !table.engine.isLowOnMemory;
    const all = `SELECT * EXCLUDE (${FILE}) FROM ${eventRows(group, own, table.zone)}`;
    const query = isSorted ? `${all} ${sortedBy(own, rows)}` : all;
    added.push(await table.write({ table: 'events', date, query, rows, isSorted }));
  }
  return changeOf(table, 'rewrite', { removed: batch, added });
}

/** The change of all tables that follows from a change of `events`. Called inside a transaction. */
export async function changeOf(table: FileTable, kind: 'rewrite' | 'purge', events: ChangedFiles): Promise<FileChange> {
  const { state, files } = table.snapshot;
  const change = await derive(table, events, state);
  const receipts = receiptsWith(state.receipts, liveRows(filesAfter(files, change)));
  return { kind, ...change, state: { ...state, receipts } };
}

export function sizeOf(table: FileTable) {
  const rows = table.filesOf('events').reduce((sum, file) => sum + file.rows, 0);
  return { rows, bytes: table.snapshot.files.reduce((sum, { bytes }) => sum + bytes, 0) };
}

/** The result of a rewrite; `files` are the replaced files of `events`. */
export function resultOf(
  table: FileTable,
  before: ReturnType<typeof sizeOf>,
  files: readonly DataFile[],
): RewriteResult {
  const after = sizeOf(table);
  return {
    rows: after.rows,
    rowsRemoved: before.rows - after.rows,
    files: files.map(({ path }) => path),
    bytesBefore: before.bytes,
    bytesAfter: after.bytes,
  };
}
