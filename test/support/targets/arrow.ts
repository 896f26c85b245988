import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Data, type Table, tableFromIPC } from 'apache-arrow';
import { type ColumnType, isColumnType } from '../../../src/cells/types/column-types.ts';
import type { CheckedDay } from '../../../src/extract/checked-day.ts';
import { type CommitResult, NOTHING_STORED, sumOfCommits } from '../../../src/table/commit.ts';
import { arrow } from '../../../src/targets/targets.ts';
import { arrowAt } from '../column-types.ts';
import { Days, type PlaceSettings } from './days.ts';

/** A file for a stream, and the days made for it. */
export class ArrowFixture extends Days {
  readonly out: string = join(this.dir, 'events.arrows');

  /** Writes a stream; `rows` are those of the days that its reader has taken. */
  async write(days: Iterable<CheckedDay> | AsyncIterable<CheckedDay>, settings: PlaceSettings = {}) {
    let sum = NOTHING_STORED;
    const onSent = (_: CheckedDay, sent: CommitResult) => {
      sum = sumOfCommits(sum, sent);
    };
    const sink = await arrow.open(this.options({ ...settings, address: this.out }));
    await sink.write(asStream(days), onSent);
    return sum;
  }

  table(): Table {
    return tableFromIPC(readFileSync(this.out));
  }

  /** Rows as plain values: bigints as text, lists as arrays. */
  rows(): Record<string, unknown>[] {
    const json = JSON.stringify(this.table().toArray(), (_, value) => (typeof value === 'bigint' ? `${value}` : value));
    return JSON.parse(json);
  }
}

export async function* asStream(days: Iterable<CheckedDay> | AsyncIterable<CheckedDay>): AsyncGenerator<CheckedDay> {
  yield* days;
}

/** A column of a stream: its name in the export, and its values as the cells of its type are written, lists as arrays. */
export interface StreamedColumn {
  readonly name: string;
  readonly source: string | undefined;
  readonly type: ColumnType;
  readonly values: readonly unknown[];
}

/** Reads a finished stream from the memory of its vectors, so that nothing is rounded on the way. */
export function streamedColumns(file: string): StreamedColumn[] {
  const table = tableFromIPC(readFileSync(file));
  return table.schema.fields.map(({ name, metadata }, i) => ({
    name,
    source: metadata.get('source'),
    type: typeOf(name, metadata),
    values: table.batches.flatMap(({ data }) => valuesOf(data.children[i], typeOf(name, metadata))),
  }));
}

function typeOf(name: string, metadata: ReadonlyMap<string, string>): ColumnType {
  const type = name === 'event_date' ? 'date' : name === '_loaded_at' ? 'datetime' : metadata.get('type');
  return isColumnType(type) ? type : 'string';
}

function valuesOf(data: Data | undefined, type: ColumnType): unknown[] {
  return data === undefined ? [] : Array.from({ length: data.length }, (_, row) => arrowAt(type, data, row));
}
