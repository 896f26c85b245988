// This folder: Airbyte records. The bytes of CSV become the bytes of JSON without an object or a string for each cell.
// In the order of reading:
//
//   streams.ts          what the streams are: rows, columns, key
//   record-writer.ts    goes through the files of a day, and gives each row to the streams that have it
//   row-ids.ts          reads the ids of a row
//   record-encoder.ts   writes the rows of a file as lines into a `ByteBuffer`
//   properties.ts       the names of columns in a stream
//   record-columns.ts   how the cells of a column are written

import { createReadStream } from 'node:fs';
import { isNullText } from '../../base/ascii.ts';
import { ByteBuffer } from '../../base/byte-buffer.ts';
import type { CsvRow } from '../../cells/csv/row.ts';
import { RowReader } from '../../cells/csv/row-reader.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { type CheckedDay, type CheckedFile, mayHaveDuplicateIds } from '../../extract/checked-day.ts';
import { EVENTS, isItemGroup, type Table } from '../../table/tables.ts';
import { RecordEncoder, type StreamStats } from './record-encoder.ts';
import { RowIds } from './row-ids.ts';
import { STREAMS, type StreamSchemas } from './streams.ts';

/** Size of the pieces in which a file is read, whose lines are written at once (bytes). */
const PIECE_BYTES = 256 * 1024;

interface RecordOptions {
  /** The table of the export: its rows are numbered by the ids in its `idColumn`. */
  readonly table: Table;
  readonly timezone: string | undefined;
  /** ms since 1970. */
  readonly emittedAt: number;
  readonly signal: AbortSignal;
}

/**
 * Writes the records of `streams`, all of one export, for the files of a day. Stops between two pieces when the signal
 * aborts. `write` takes whole lines in order; their bytes may be used again once it resolves. Returns what was written
 * of each stream, in their order.
 */
export async function writeRecords(
  day: Pick<CheckedDay, 'files'>,
  streams: readonly StreamSchemas[],
  write: (lines: Uint8Array) => Promise<void>,
  { table, timezone, emittedAt, signal }: RecordOptions,
): Promise<readonly StreamStats[]> {
  if (streams.length === 0) return [];
  const needsEventRows = streams.some(({ name }) => STREAMS[name].selection === 'row_per_event');
  const standsForEvent = needsEventRows ? await findEventRows(day, signal) : new Uint8Array();
  const rowCountById = mayHaveDuplicateIds(day) ? new Map<string, number>() : undefined;
  const lines = new ByteBuffer();
  const encoderOptions = { zone: zoneOf(timezone), emittedAt, lines };
  const stats = streams.map((): StreamStats => ({ recordCount: 0, unsentColumns: new Set(), rescuedCells: new Map() }));
  let rowIndex = 0;
  for (const file of day.files) {
    const rowIds = new RowIds(file.columns, table.idColumn, rowCountById);
    const isItemColumn = file.columns.map(({ group }) => isItemGroup(group));
    const encoders = streams.map((stream, i) => new RecordEncoder(stream, file, stats[i], encoderOptions));
    for await (const reader of readByPieces(file, signal)) {
      for (; reader.next(); rowIndex++) {
        rowIds.refill(reader.row);
        for (const encoder of encoders) {
          const { selection } = encoder;
          if (selection === 'row_per_event' && standsForEvent[rowIndex] === 0) continue;
          if (selection === 'rows_with_item' && !hasItem(reader.row, isItemColumn)) continue;
          encoder.write(reader.row, rowIds);
        }
      }
      await write(lines.take());
    }
  }
  return stats;
}

/** Gives the reader of a file after each piece: its `next` then goes to the rows behind the header that are whole. */
async function* readByPieces({ path }: CheckedFile, signal: AbortSignal): AsyncGenerator<RowReader, void, undefined> {
  const reader = new RowReader();
  const passHeader = () => reader.rowNumber > 0 || reader.next();
  for await (const piece of createReadStream(path, { highWaterMark: PIECE_BYTES, signal })) {
    reader.push(piece);
    if (passHeader()) yield reader;
  }
  reader.finish();
  if (passHeader()) yield reader;
}

/**
 * Gives 1 for each row of a day that stands for its event, the first one of the lowest position, else 0. One that names
 * no event is an event of its own. Takes a pass over all files: which row it is does not show before the last one.
 */
async function findEventRows({ files }: Pick<CheckedDay, 'files'>, signal: AbortSignal): Promise<Uint8Array> {
  const rowCount = files.reduce((sum, { keptRows }) => sum + keptRows, 0);
  const standsForEvent = new Uint8Array(rowCount);
  const positions = new Float64Array(rowCount);
  const rowOfEvent = new Map<string, number>();
  let rowIndex = 0;
  for (const file of files) {
    const rowIds = new RowIds(file.columns, EVENTS.idColumn);
    for await (const reader of readByPieces(file, signal)) {
      for (; reader.next(); rowIndex++) {
        rowIds.refill(reader.row);
        positions[rowIndex] = Number(rowIds.position ?? -1);
        const event = rowIds.logId?.latin1;
        if (event === undefined) {
          standsForEvent[rowIndex] = 1;
          continue;
        }
        const earlierRow = rowOfEvent.get(event);
        if (earlierRow === undefined || positions[rowIndex] < positions[earlierRow]) rowOfEvent.set(event, rowIndex);
      }
    }
  }
  for (const row of rowOfEvent.values()) standsForEvent[row] = 1;
  return standsForEvent;
}

function hasItem(row: CsvRow, isItemColumn: readonly boolean[]): boolean {
  const { bytes, filledCount, columnNumbers, starts, ends } = row;
  for (let i = 0; i < filledCount; i++) {
    if (isItemColumn[columnNumbers[i]] && !isNullText(bytes, starts[i], ends[i])) return true;
  }
  return false;
}
