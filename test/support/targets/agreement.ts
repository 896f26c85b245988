import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { discoveredProperties } from '../../../src/airbyte/records/properties.ts';
import { writeRecords } from '../../../src/airbyte/records/record-writer.ts';
import { addDays } from '../../../src/base/days.ts';
import { identifier, literal } from '../../../src/base/sql.ts';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import { type ColumnType, codecOf } from '../../../src/cells/types/column-types.ts';
import { zoneOf } from '../../../src/cells/types/zone.ts';
import type { CheckedDay } from '../../../src/extract/checked-day.ts';
import { EVENTS } from '../../../src/table/tables.ts';
import { openArrowSink } from '../../../src/targets/arrow/arrow-sink.ts';
import { canonical, exactJson, sqlText } from '../column-types.ts';
import { scanIn } from '../scan.ts';
import { asStream, streamedColumns } from './arrow.ts';
import { Place } from './place.ts';
import { inDatabase } from './query.ts';
import { propertyOf } from './records.ts';

/** One row in a sink: a value by column of the header, and the rescued texts by source name. */
interface StoredRow {
  readonly values: readonly unknown[];
  readonly rescued: Readonly<Record<string, string>>;
}
/** Rows by `_key`. */
export type RowsByKey = ReadonlyMap<string, StoredRow>;

interface Column {
  readonly name: string;
  /** Type of the column; null if it has no value, so that a table lacks it. */
  readonly type: ColumnType | null;
}

/** One export, given to every sink. */
export class AgreementFixture extends Place {
  #exports = 0;

  constructor() {
    super('duckdb');
  }

  /** A day of one file with these bytes, cut into chunks at these offsets while it was scanned. */
  exported(body: Uint8Array, cuts: readonly number[], timezone: string | undefined): CheckedDay {
    const scanner = new ExportScanner({ timezone, needsEventColumns: false, minReadBytes: 1 });
    const { result, written } = scanIn(scanner, body, cuts);
    const file = { path: join(this.dir, `export-${++this.#exports}.csv`), bytes: body.length, sha256: '', ...result };
    writeFileSync(file.path, written);
    const day = addDays('2026-01-01', this.#exports);
    return { ...this.ofCsv(day, [], { rows: result.rows }), files: [file] };
  }

  /** The rows of a table after these days, by the header of the first. */
  async inDuckDb(days: readonly CheckedDay[], timezone: string | undefined): Promise<RowsByKey> {
    this.timezone = timezone;
    await this.load(days.map((day) => [day]));
    return this.#held(this.place, 'events', days[0], timezone !== undefined);
  }

  async inParquet(day: CheckedDay, timezone: string | undefined): Promise<RowsByKey> {
    const parquet = new Place('parquet');
    parquet.timezone = timezone;
    await parquet.load([[day]]);
    const files = `read_parquet(${literal(`${parquet.place}/events/*/*.parquet`)}, hive_partitioning = false)`;
    return this.#held(this.place, files, day, timezone !== undefined);
  }

  /** The rows of one stream over these days, by the header of the first. */
  async inArrow(days: readonly CheckedDay[], timezone: string | undefined): Promise<RowsByKey> {
    const out = join(this.dir, 'events.arrows');
    await openArrowSink(out, this.options({ timezone: timezone ?? null })).write(asStream(days), () => {});
    const streamed = streamedColumns(out);
    const textsOf = (name: string) => streamed.find((column) => column.name === name)?.values ?? [];
    const columnsOfHeader = days[0].files[0].columns.map(({ source, occurrence }) => {
      return streamed.filter((column) => column.source === source)[occurrence - 1];
    });
    const rescued = textsOf('_rescued');
    return heldOf(
      textsOf('_key').map((key, row) => {
        const values = columnsOfHeader.map((column) =>
          column === undefined ? null : canonical(column.type, column.values[row]),
        );
        return [String(key), { values, rescued: JSON.parse(String(rescued[row] ?? '{}')) }];
      }),
    );
  }

  async #held(file: string, from: string, day: CheckedDay, asInstants: boolean): Promise<RowsByKey> {
    return inDatabase(file, async (connection) => {
      const rows = async (sql: string) => (await connection.runAndReadAll(sql)).getRowsJson();
      const columns = await this.#columns(rows, day);
      const texts = columns.map(({ name, type }) =>
        type === null ? 'NULL' : `CAST(${sqlText(type, identifier(name), asInstants)} AS VARCHAR)`,
      );
      // As JSON: a U+FEFF at the start of a text would get lost on the way otherwise.
      const held = await rows(
        `SELECT CAST(to_json([_key, CAST(_rescued AS VARCHAR), ${texts.join(', ')}]) AS VARCHAR) FROM ${from}`,
      );
      return heldOf(held.map(([json]) => rowOf(JSON.parse(String(json)), columns)));
    });
  }

  async #columns(rows: (sql: string) => Promise<unknown[][]>, day: CheckedDay): Promise<Column[]> {
    const [[json]] = await rows(
      'SELECT CAST(to_json(list({source: source_name, occurrence: occurrence, name: table_name, type: type})) AS VARCHAR) FROM _dfinery_columns',
    );
    const stored: { source: string; occurrence: number; name: string; type: ColumnType | null }[] = JSON.parse(
      String(json),
    );
    return day.files[0].columns.map(({ source, occurrence }) => {
      const column = stored.find((entry) => entry.source === source && entry.occurrence === occurrence);
      if (column === undefined) throw new Error(`no column for ${JSON.stringify(source)}`);
      return column;
    });
  }

  /** The rows in the records of a source. Its catalog has for each column the type that the data gave it. */
  async inRecords(day: CheckedDay, timezone: string | undefined): Promise<RowsByKey> {
    const [{ columns }] = day.files;
    const names = discoveredProperties('events', columns).map(({ name }) => name);
    const typed = names.map((name, i): Column => ({ name, type: columns[i].type ?? null }));
    const schemas = new Map<string, unknown>([
      ...typed.map(({ name, type }) => [name, codecOf(type ?? 'string', zoneOf(timezone)).jsonSchema] as const),
      ['_key', propertyOf('string')],
      ['_rescued', propertyOf('object')],
    ]);
    const parts: Buffer[] = [];
    const keep = async (bytes: Uint8Array) => {
      parts.push(Buffer.from(bytes));
    };
    const options = { table: EVENTS, timezone, emittedAt: 0, signal: this.signal };
    await writeRecords(day, [{ name: 'events', schemas }], keep, options);
    const lines = Buffer.concat(parts).toString().split('\n').slice(0, -1);
    return heldOf(lines.map((line) => recordOf(line, typed)));
  }
}

function heldOf(rows: readonly (readonly [string, StoredRow])[]): RowsByKey {
  const held = new Map(rows);
  if (held.size !== rows.length) throw new Error('two rows have one _key');
  return held;
}

function rowOf(cells: readonly (string | null)[], columns: readonly Column[]): [string, StoredRow] {
  const [key, rescued, ...texts] = cells;
  const values = texts.map((text, i) => canonical(columns[i].type ?? 'string', text));
  return [String(key), { values, rescued: JSON.parse(rescued ?? '{}') }];
}

function recordOf(line: string, columns: readonly Column[]): [string, StoredRow] {
  const { record } = exactJson(line);
  const { _key, _rescued, ...data } = record.data;
  const values = columns.map(({ name, type }) => {
    const value = Object.hasOwn(data, name) ? data[name] : null;
    // A column of nothing but `null` has no type; the records of one that is called a string hold the text.
    return type === null ? null : canonical(type, value);
  });
  return [_key, { values, rescued: _rescued ?? {} }];
}
