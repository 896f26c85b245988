import { CLOSE_BRACE, isNullText, OPEN_BRACE } from '../../base/ascii.ts';
import type { ByteBuffer } from '../../base/byte-buffer.ts';
import { CellText, type CsvRow } from '../../cells/csv/row.ts';
import { LOG_ID } from '../../cells/header.ts';
import { jsonRoom } from '../../cells/types/codec.ts';
import { CellClassifier, fits } from '../../cells/types/column-types.ts';
import { NULL_TEXT } from '../../cells/types/forms.ts';
import { writeString } from '../../cells/types/string.ts';
import type { Zone } from '../../cells/types/zone.ts';
import type { CheckedFile } from '../../extract/checked-day.ts';
import { ITEM_POSITION } from '../../table/column-names.ts';
import { configuredProperties } from './properties.ts';
import { memberLabel, type RecordColumn, recordColumn } from './record-columns.ts';
import type { RowIds } from './row-ids.ts';
import { KEY_PROPERTY, RESCUED_PROPERTY, type RowSelection, STREAMS, type StreamSchemas } from './streams.ts';

const NULL_JSON = Buffer.from('null');
/** Closes the record and its message. */
const LINE_END = Buffer.from('}}\n');

/** What was written of one stream. */
export interface StreamStats {
  recordCount: number;
  /** Columns that the catalog of the stream lacks, each by the first of its names that no other column has. */
  readonly unsentColumns: Set<string>;
  /** Number of cells that did not fit, by property. */
  readonly rescuedCells: Map<string, number>;
}

/** Writes the rows of one file as RECORD lines of one stream. A cell is its number in the row, and no object. */
export class RecordEncoder {
  readonly selection: RowSelection;
  readonly #stats: StreamStats;
  readonly #labels: ReturnType<typeof labelsOf>;
  readonly #lineStart: Uint8Array;
  /** By column of the file; undefined for a column that is not sent. */
  readonly #columns: (RecordColumn | undefined)[];
  readonly #misfits: { readonly column: RecordColumn; readonly cellNumber: number }[] = [];
  readonly #text = new CellText();
  readonly #classifier = new CellClassifier();
  readonly #lines: ByteBuffer;

  /** `stats` counts what is written. `zone`: that of datetimes that name none. `lines` get the records. */
  constructor(
    stream: StreamSchemas,
    { columns }: Pick<CheckedFile, 'columns'>,
    stats: StreamStats,
    { zone, emittedAt, lines }: { zone: Zone | undefined; emittedAt: number; lines: ByteBuffer },
  ) {
    this.selection = STREAMS[stream.name].selection;
    this.#stats = stats;
    this.#labels = labelsOf(stream);
    this.#lines = lines;
    this.#lineStart = Buffer.from(
      `{"type":"RECORD","record":{"stream":"${stream.name}","emitted_at":${emittedAt},"data":`,
    );
    this.#columns = columns.map(() => undefined);
    for (const { name, freeNames, index } of configuredProperties(stream, columns)) {
      if (name === undefined) {
        stats.unsentColumns.add(freeNames[0]);
        continue;
      }
      this.#columns[index] = recordColumn(name, columns[index], stream.schemas.get(name), zone);
    }
  }

  /** Appends a row, which has these ids: `{"type":"RECORD",…,"data":{"_key":"7","age":31}}}`. */
  write(row: CsvRow, rowIds: RowIds): void {
    const labels = this.#labels;
    const lines = this.#lines;
    lines.append(this.#lineStart);
    const dataStart = lines.end;
    if (labels.key !== undefined) this.#writeId(labels.key, rowIds);
    for (let cellNumber = 0; cellNumber < row.filledCount; cellNumber++) this.#writeCell(row, cellNumber);
    if (labels.logId !== undefined && rowIds.logId === undefined) this.#writeId(labels.logId, rowIds);
    if (labels.position !== undefined) this.#writePosition(labels.position, rowIds);
    if (this.#misfits.length > 0 && labels.rescued !== undefined) this.#writeRescued(labels.rescued, row);
    this.#closeObject(dataStart);
    if (this.#misfits.length > 0) this.#writeChanges();
    lines.append(LINE_END);
    this.#stats.recordCount++;
  }

  /** Makes an object of the members from `start` on. Each begins with a comma, of which the first becomes the brace. */
  #closeObject(start: number): void {
    const lines = this.#lines;
    lines.reserve(2);
    lines.bytes[start] = OPEN_BRACE;
    lines.end = Math.max(lines.end, start + 1);
    lines.appendByte(CLOSE_BRACE);
  }

  /** Writes a label and its cell; nothing if the column is not sent or the cell is absent. */
  #writeCell(row: CsvRow, cellNumber: number): void {
    const column = this.#columns[row.columnNumbers[cellNumber]];
    if (column === undefined) return;
    const lines = this.#lines;
    this.#text.read(row, cellNumber);
    const { bytes, start, end } = this.#text;
    const { codec } = column;
    const isAbsent = (codec.forms & NULL_TEXT) === 0 && isNullText(bytes, start, end);
    if (isAbsent) return;
    lines.append(column.label);
    if (column.allCellsFit || fits(codec, this.#classifier.formsOf(bytes, start, end, column.zone))) {
      lines.reserve(jsonRoom(end - start));
      lines.end = codec.writeJson(bytes, start, end, lines.bytes, lines.end);
    } else {
      this.#misfits.push({ column, cellNumber });
      lines.append(NULL_JSON);
    }
  }

  /** Writes `,"_key":"…"`, with `#n` behind the id for the second and later rows that share it. */
  #writeId(label: Uint8Array, { id, occurrence }: RowIds): void {
    const lines = this.#lines;
    lines.append(label);
    this.#writeText(id);
    if (occurrence === 1) return;
    // Behind the id stands the closing quote.
    lines.end--;
    lines.append(Buffer.from(`#${occurrence}"`));
  }

  /** Writes a JSON string. */
  #writeText({ bytes, start, end }: CellText): void {
    const lines = this.#lines;
    lines.reserve(jsonRoom(end - start));
    lines.end = writeString(bytes, start, end, lines.bytes, lines.end);
  }

  /** Writes `,"item_position":7`; nothing for a row without a position. */
  #writePosition(label: Uint8Array, { position }: RowIds): void {
    if (position === undefined) return;
    this.#lines.append(label);
    this.#lines.append(Buffer.from(position));
  }

  /** Writes the texts of the misfits: `,"_rescued":{"age":"x"}`. */
  #writeRescued(label: Uint8Array, row: CsvRow): void {
    this.#lines.append(label);
    const objectStart = this.#lines.end;
    for (const { column, cellNumber } of this.#misfits) {
      this.#lines.append(column.rescuedLabel);
      this.#text.read(row, cellNumber);
      this.#writeText(this.#text);
    }
    this.#closeObject(objectStart);
  }

  /** Counts the misfits, writes that they are null: `,"meta":{"changes":[…]}`, and forgets them. */
  #writeChanges(): void {
    const { rescuedCells } = this.#stats;
    const changes = this.#misfits.splice(0).map(({ column: { propertyName } }) => {
      rescuedCells.set(propertyName, (rescuedCells.get(propertyName) ?? 0) + 1);
      return `{"field":${JSON.stringify(propertyName)},"change":"NULLED","reason":"SOURCE_SERIALIZATION_ERROR"}`;
    });
    this.#lines.append(Buffer.from(`,"meta":{"changes":[${changes.join(',')}]}`));
  }
}

/** The labels of properties that are no column of the export; undefined for one that is not sent. */
function labelsOf({ name, schemas }: StreamSchemas) {
  const { selection, addedProperties } = STREAMS[name];
  const labelOf = (property: string) => (schemas.has(property) ? memberLabel(property) : undefined);
  const addedLabel = (property: string) => (property in addedProperties ? labelOf(property) : undefined);
  return {
    key: addedLabel(KEY_PROPERTY),
    rescued: addedLabel(RESCUED_PROPERTY),
    position: addedLabel(ITEM_POSITION),
    // A row that names no event is an event of its own, whose id is the key of the row.
    logId: selection === 'row_per_event' ? labelOf(LOG_ID) : undefined,
  };
}
