// The yardstick for Arrow: csv-parse and apache-arrow's builders. node dist/bench/arrow-builders.js OUT FILE ROWS
// Prints {"seconds":…}.
import { createReadStream, createWriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import {
  Bool,
  type Builder,
  type DataType,
  DateDay,
  Dictionary,
  Field,
  Float64,
  Int32,
  Int64,
  List,
  makeBuilder,
  makeData,
  RecordBatch,
  RecordBatchStreamWriter,
  Schema,
  Struct,
  TimestampMillisecond,
  Utf8,
} from 'apache-arrow';
import { parse } from 'csv-parse';

const BATCH_ROWS = 65_536;
const [out = '', file = '', most = '0'] = process.argv.slice(2);

const doubles = 'df_delivery_charge df_discount df_items_df_price df_total_purchase_amount score'.split(' ');
const longs = 'df_items_df_quantity sum visits'.split(' ');
const times = 'df_correction_datetime df_event_datetime df_server_datetime'.split(' ');

function timeOf(text: string): number {
  if (text[4] === '-') return Date.parse(`${text.replace(' ', 'T')}Z`);
  const [y = 0, m = 1, d = 1, h = 0, minute = 0] = text.split(/[. :]/).map(Number);
  return Date.UTC(y, m - 1, d, h, minute);
}

interface Column {
  readonly type: DataType;
  valueOf(text: string): unknown;
}

function columnOf(name: string): Column {
  if (name === 'df_event_name') return { type: new Dictionary(new Utf8(), new Int32()), valueOf: (text) => text };
  if (name === 'coupon_codes') {
    return { type: new List(new Field('item', new Utf8(), true)), valueOf: (text) => JSON.parse(text) };
  }
  if (doubles.includes(name)) return { type: new Float64(), valueOf: Number };
  if (longs.includes(name)) return { type: new Int64(), valueOf: BigInt };
  if (times.includes(name)) return { type: new TimestampMillisecond(), valueOf: timeOf };
  if (name === 'first_visit') return { type: new DateDay(), valueOf: (text) => new Date(text) };
  if (name === 'is_member') return { type: new Bool(), valueOf: (text) => text === 'TRUE' };
  return { type: new Utf8(), valueOf: (text) => text };
}

const began = performance.now();
const writer = new RecordBatchStreamWriter();
const target = createWriteStream(out);
writer.toNodeStream().pipe(target);
let header: string[] = [];
let columns: Column[] = [];
let builders: Builder[] = [];
let rows = 0;

function flush(): void {
  const children = builders.map((builder) => builder.flush());
  const schema = new Schema(header.map((name, i) => new Field(name, columns[i]?.type ?? new Utf8(), true)));
  const length = children[0]?.length ?? 0;
  writer.write(new RecordBatch(schema, makeData({ type: new Struct(schema.fields), length, nullCount: 0, children })));
}

for await (const row of createReadStream(file).pipe(parse({}))) {
  const cells: string[] = row;
  if (header.length === 0) {
    header = cells;
    columns = header.map(columnOf);
    builders = columns.map(({ type }) => makeBuilder({ type, nullValues: [null] }));
    continue;
  }
  for (let i = 0; i < cells.length; i++) {
    const text = cells[i] ?? '';
    const isAbsent = text === '' || text === 'null';
    builders[i]?.append(isAbsent ? null : columns[i]?.valueOf(text));
  }
  if (++rows % BATCH_ROWS === 0) flush();
  if (rows === Number(most)) break;
}
flush();
writer.finish();
await finished(target);
console.log(JSON.stringify({ seconds: (performance.now() - began) / 1_000, rows }));
