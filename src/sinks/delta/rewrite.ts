import { randomUUID } from 'node:crypto';
import { type StoredColumn, typedColumns } from '../../table/columns.ts';
import { Zone } from '../../types/zone.ts';
import { typedNull } from '../sql/columns/typed.ts';
import { identifier } from '../sql/engine/quote.ts';
import { failureOf } from '../sql/files/folder-failure.ts';
import { sortedBy } from '../sql/files/order.ts';
import { ROW_GROUP_ROWS, readFiles, writeFile } from '../sql/files/parquet-file.ts';
import type { Rewritten } from '../target.ts';
import { commitChange, type EventsChange, type NewEventFile, prepareChange, type Settings } from './commit/change.ts';
import { columnsIn } from './commit/columns.ts';
import { METADATA } from './commit/metadata.ts';
import { setTable } from './domains.ts';
import { type DataFile, newFile, windowsIn } from './files/data-file.ts';
import { Lake, type LakeOptions } from './lake.ts';

/** Bytes of files that one commit of `compact` replaces: what the spool folder must hold of a bucket at a time. */
const BATCH_BYTES = 1024 * 1024 * 1024;

/** Merges the files of each date into one sorted file and removes files without rows. Throws Failure. */
export function compactDelta(options: LakeOptions): Promise<Rewritten> {
  return rewriting(options, async (lake, settings) => {
    const batches = batchesOf(lake.events.files());
    for (const batch of batches) {
      options.signal?.throwIfAborted();
      const work = async () => prepareChange(lake, await compacted(lake, batch, settings), settings);
      await commitChange(lake, await lake.prepare(work, options.signal), settings);
    }
    return batches.flat();
  });
}

/** Runs work that rewrites files of the tables and gives those of `events`; returns the result in numbers. Throws Failure. */
export function rewriting(
  options: LakeOptions,
  work: (lake: Lake, settings: Settings) => Promise<readonly DataFile[]>,
): Promise<Rewritten> {
  return withLake(options, async (lake, settings) => {
    const before = sizeOf(lake);
    const files = (await work(lake, settings)).map(({ path }) => path);
    const after = sizeOf(lake);
    return {
      rows: after.rows,
      rowsRemoved: before.rows - after.rows,
      files,
      bytesBefore: before.bytes,
      bytesAfter: after.bytes,
    };
  });
}

/** Opens existing tables for writing, with the settings of their last load. Throws Failure. */
export async function withLake<T>(
  options: LakeOptions,
  work: (lake: Lake, settings: Settings) => Promise<T>,
): Promise<T> {
  try {
    const lake = await Lake.open(options, 'write');
    try {
      const info = lake.mustExist().events.domains.table();
      const zone = typeof info?.timezone === 'string' ? new Zone(info.timezone) : undefined;
      const { retentionMs } = lake.events;
      return await work(lake, { zone, tables: info?.tables ?? [], retentionMs, now: () => options.clock.now() });
    } finally {
      await lake.close();
    }
  } catch (error) {
    options.signal?.throwIfAborted();
    throw failureOf(error, options.url);
  }
}

/** The files that one commit compacts: all of a date, or none. */
function batchesOf(files: readonly DataFile[]): DataFile[][] {
  const dates = new Map<string | null, DataFile[]>();
  for (const file of files) dates.set(file.date, [...(dates.get(file.date) ?? []), file]);
  const batches: DataFile[][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const group of dates.values()) {
    if (!shrinks(group)) continue;
    const own = group.reduce((sum, file) => sum + file.bytes, 0);
    if (bytes + own > BATCH_BYTES) {
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

async function compacted(lake: Lake, batch: readonly DataFile[], settings: Settings): Promise<EventsChange> {
  const columns = lake.events.domains.columns() ?? [];
  const locals = await lake.fetch('events', batch);
  const added: NewEventFile[] = [];
  for (const date of new Set(batch.map((file) => file.date))) {
    const group = batch.filter((file) => file.date === date && file.rows > 0);
    if (group.length === 0) continue;
    const names = new Set(group.flatMap((file) => [...file.columns]));
    const own = columnsIn(columns, names);
    const rows = group.reduce((sum, file) => sum + file.rows, 0);
    const all = group.map(
      (file) => `SELECT ${selectOf(own, file, settings.zone)} FROM ${readFiles([locals.get(file.path) ?? ''])}`,
    );
    const query = `SELECT * FROM (${all.join(' UNION ALL ')}) ${lake.isLowOnMemory ? '' : sortedBy(own, rows)}`;
    added.push(await writeRows(lake, { query, rows, names, date }, true));
  }
  return changeOf(lake, { operation: 'OPTIMIZE', removed: batch, added, isChange: false }, columns, settings);
}

/** The columns of a file, and NULL for those that it lacks: a select list in the order of the columns. */
function selectOf(columns: readonly StoredColumn[], file: DataFile, zone: Zone | undefined): string {
  const values = typedColumns(columns).map(({ name, type }) =>
    file.columns.has(name) ? identifier(name) : `${typedNull(type, zone)} AS ${identifier(name)}`,
  );
  return ['_key', '_dfinery_window', '_rescued', ...values].join(', ');
}

interface FileToWrite {
  readonly query: string;
  readonly rows: number;
  readonly names: ReadonlySet<string>;
  readonly date: string | null;
}

export async function writeRows(
  lake: Lake,
  { query, rows, names, date }: FileToWrite,
  isSorted: boolean,
): Promise<NewEventFile> {
  const local = lake.newPath('rewritten');
  await writeFile(lake, { query, rows }, local, METADATA);
  return { ...newFile(local, date, { windows: await windowsIn(lake.engine, local), isSorted }), columns: names };
}

export function changeOf(
  lake: Lake,
  what: Pick<EventsChange, 'operation' | 'removed' | 'added' | 'isChange'>,
  columns: readonly StoredColumn[],
  { zone, tables }: Settings,
): EventsChange {
  const { window } = lake.events;
  const id = randomUUID();
  const actions = [setTable({ table: 'events', window, timezone: zone?.name ?? null, tables, change_id: id })];
  return { ...what, id, window, columns, actions };
}

function sizeOf(lake: Lake): { readonly rows: number; readonly bytes: number } {
  const rows = lake.events.files().reduce((sum, file) => sum + file.rows, 0);
  const all = [...lake.tables.values()].flatMap((table) => table.files());
  return { rows, bytes: all.reduce((sum, file) => sum + file.bytes, 0) };
}
