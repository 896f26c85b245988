// This folder: Airbyte records. The bytes of CSV become the bytes of JSON without an object or a string for each cell.
// `writeRecords` goes through the files of a day. For each file `record-plan.ts` decides how each column is written,
// under the names of `property-names.ts`. `row-key.ts` reads the ids of a row, `event-rows.ts`
// chooses the row that stands for its event, `record-encoder.ts` writes its lines.

import { createReadStream } from 'node:fs';
import { isNull } from '../../base/ascii.ts';
import { DETAIL_LOG_ID, type HeaderColumn, headerColumns } from '../../cells/columns/groups.ts';
import { RowSource } from '../../cells/csv/row-source.ts';
import { COLUMN_SHIFT, type RowTokenizer, STRIDE } from '../../cells/csv/tokenizer.ts';
import { type DayDownload, mayHaveDuplicateIds, type SpoolFile } from '../../extract/checked-day.ts';
import { isItemGroup } from '../../table/tables.ts';
import { EventRows } from './event-rows.ts';
import { Lines, RecordEncoder } from './record-encoder.ts';
import { planRecords, type RecordStream } from './record-plan.ts';
import { RowKey } from './row-key.ts';
import type { StreamName } from './streams.ts';

/** Size of the pieces in which a file is read, whose lines are written at once (bytes). */
const PIECE_BYTES = 256 * 1024;

interface RecordOptions {
  readonly timezone: string | undefined;
  /** ms since 1970. */
  readonly emittedAt: number;
  readonly signal: AbortSignal;
  /** The column whose cells are the keys of rows; default: df_event_detail_log_id. */
  readonly idColumn?: string;
}

export interface WrittenRecords {
  readonly recordCounts: Map<StreamName, number>;
  /** Number of cells that did not fit, by column of the export; one that several streams show counts once. */
  readonly rescuedCells: Map<string, number>;
  /** Columns that a stream would have but that its catalog lacks. */
  readonly unsentColumns: Map<StreamName, readonly string[]>;
}

/**
 * Writes the records of `streams` for the files of a day; stops between two pieces when the signal aborts. `write`
 * takes whole lines in order; their bytes may be used again once it resolves.
 */
export async function writeRecords(
  day: Pick<DayDownload, 'files'>,
  streams: readonly RecordStream[],
  write: (lines: Uint8Array) => Promise<void>,
  { timezone, emittedAt, signal, idColumn = DETAIL_LOG_ID }: RecordOptions,
): Promise<WrittenRecords> {
  const written: WrittenRecords = {
    recordCounts: new Map(streams.map(({ name }) => [name, 0])),
    rescuedCells: new Map(),
    unsentColumns: new Map(streams.map(({ name }) => [name, []])),
  };
  if (streams.length === 0) return written;
  const rows: RowsOfDay = {
    events: streams.some(({ name }) => name === 'event_logs') ? await eventRows(day, signal) : undefined,
    rowsById: mayHaveDuplicateIds(day) ? new Map() : undefined,
    next: 0,
  };
  const lines = new Lines();
  for (const file of day.files) {
    const encoders = streams.map((stream) => new RecordEncoder(planRecords(stream, file, timezone), emittedAt));
    const writeRow = rowWriter(encoders, headerColumns(file.header), idColumn, rows, lines);
    await forEachRow(file, signal, writeRow, () => write(lines.take()));
    countRecords(written, file.header, encoders);
  }
  return written;
}

/** What follows for a row from the other rows of its day. */
interface RowsOfDay {
  /** Undefined if no stream needs it. */
  readonly events: EventRows | undefined;
  /** Number of rows so far by id; undefined if every row has an id of its own. */
  readonly rowsById: Map<string, number> | undefined;
  /** Index of the next row of the day. */
  next: number;
}

type RowHandler = (bytes: Buffer, tokenizer: RowTokenizer) => void;

/** Appends the next row of the day to `lines` for each stream that has it. */
function rowWriter(
  encoders: readonly RecordEncoder[],
  columns: readonly HeaderColumn[],
  idColumn: string,
  rows: RowsOfDay,
  lines: Lines,
): RowHandler {
  const key = new RowKey(columns, idColumn);
  const isItemColumn = Uint8Array.from(columns, ({ group }) => (isItemGroup(group) ? 1 : 0));
  return (bytes, tokenizer) => {
    key.read(bytes, tokenizer);
    const occurrence = rows.rowsById === undefined ? 1 : nextOccurrence(rows.rowsById, key.id.latin1);
    const isEvent = rows.events?.isChosen(rows.next) === true;
    rows.next++;
    for (const encoder of encoders) {
      const { stream } = encoder.plan;
      if (stream === 'event_logs' && !isEvent) continue;
      if (stream === 'event_items' && !hasItem(bytes, tokenizer, isItemColumn)) continue;
      encoder.write(bytes, tokenizer, key, occurrence, lines);
    }
  };
}

/** Adds what the encoders of one file have written. */
function countRecords(
  { recordCounts, rescuedCells, unsentColumns }: WrittenRecords,
  header: readonly string[],
  encoders: readonly RecordEncoder[],
): void {
  for (const { plan, recordCount } of encoders) {
    recordCounts.set(plan.stream, (recordCounts.get(plan.stream) ?? 0) + recordCount);
    unsentColumns.set(plan.stream, [...new Set([...(unsentColumns.get(plan.stream) ?? []), ...plan.unsentColumns])]);
  }
  for (const [column, name] of header.entries()) {
    const cells = Math.max(...encoders.map((encoder) => encoder.rescuedCells[column]));
    if (cells > 0) rescuedCells.set(name, (rescuedCells.get(name) ?? 0) + cells);
  }
}

/** Calls `onRow` for every row of a file but its header. Calls `flush` now and then, and at the end. */
async function forEachRow(
  { path }: SpoolFile,
  signal: AbortSignal,
  onRow: RowHandler,
  flush?: () => Promise<void>,
): Promise<void> {
  const source = new RowSource();
  const readRows = async () => {
    const hasRows = source.begin();
    while (hasRows && source.next()) {
      if (source.rows > 1) onRow(source.bytes, source.tokenizer);
    }
    await flush?.();
  };
  for await (const piece of createReadStream(path, { highWaterMark: PIECE_BYTES, signal })) {
    source.push(piece);
    await readRows();
  }
  source.finish();
  await readRows();
}

/** One pass over all files: which row stands for each event does not show before the last one. */
async function eventRows({ files }: Pick<DayDownload, 'files'>, signal: AbortSignal): Promise<EventRows> {
  const events = new EventRows(files.reduce((sum, { rows }) => sum + rows, 0));
  for (const file of files) {
    const key = new RowKey(headerColumns(file.header));
    await forEachRow(file, signal, (bytes, tokenizer) => {
      key.read(bytes, tokenizer);
      events.add(key);
    });
  }
  return events;
}

/** Counts the next row of the day with this id: 1 for the first. */
function nextOccurrence(rowsById: Map<string, number>, id: string): number {
  const occurrence = (rowsById.get(id) ?? 0) + 1;
  rowsById.set(id, occurrence);
  return occurrence;
}

function hasItem(bytes: Buffer, { cells, used }: RowTokenizer, isItemColumn: Uint8Array): boolean {
  for (let k = 0; k < used; k += STRIDE) {
    if (isItemColumn[cells[k] >> COLUMN_SHIFT] === 1 && !isNull(bytes, cells[k + 1], cells[k + 2])) return true;
  }
  return false;
}
