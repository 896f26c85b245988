import { openAsBlob } from 'node:fs';
import { rm } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { Field, RecordBatchStreamWriter, Schema } from 'apache-arrow';
import { abortable } from '../../base/abort.ts';
import { VERSION } from '../../base/version.ts';
import { codecOf } from '../../cells/types/column-types.ts';
import { type DuckDbType, SCALAR_TYPES, scalarOf } from '../../cells/types/duckdb-types.ts';
import type { Zone } from '../../cells/types/zone.ts';
import { EVENTS, type TypedColumn } from '../../table/tables.ts';
import type { DayFile } from './day-files.ts';

/** The schema of a stream: the program's columns, then those of the export in their order. */
export function streamSchema(columns: readonly TypedColumn[], zone: Zone | undefined): Schema {
  const fields = columns.map(({ name, source, group, type }) =>
    fieldOf(name, codecOf(type, zone).duckdbType, { source, group, type }),
  );
  const programFields = EVENTS.programColumns.map(({ name, type }) => fieldOf(name, type));
  return new Schema([...programFields, ...fields], new Map([['dfinery.version', VERSION]]));
}

function fieldOf(name: string, type: DuckDbType, metadata: Readonly<Record<string, string>> = {}): Field {
  const { scalar, isList } = scalarOf(type);
  const { arrow } = SCALAR_TYPES[scalar];
  const item = { name: 'item', type: arrow, nullable: true };
  return Field.fromJSON({
    ...(isList ? { type: { name: 'list' }, children: [item] } : { type: arrow }),
    name,
    nullable: true,
    metadata: Object.entries(metadata).map(([key, value]) => ({ key, value })),
  });
}

/** Bytes of the end of a stream, a message without content. */
const END_BYTES = 8;

/**
 * Writes an Arrow IPC stream to a Node stream. Each call resolves once its bytes are accepted. A reader that stands still
 * keeps no run from stopping: it rejects as soon as the signal aborts.
 */
export function ipcStream(output: Writable, schema: Schema, signal: AbortSignal) {
  const writer = new RecordBatchStreamWriter();
  writer.reset(undefined, schema);
  writer.finish();
  const emptyStream = writer.toUint8Array(true);
  const schemaMessage = emptyStream.subarray(0, -END_BYTES);
  const endMessage = emptyStream.subarray(-END_BYTES);
  let hasBegun = false;
  // An error that nothing handles ends the process. Each also reaches the call that wrote.
  output.on('error', () => undefined);
  const write = async (messages: Uint8Array): Promise<void> => {
    signal.throwIfAborted();
    // The schema is written together with the first message.
    if (!hasBegun) output.write(schemaMessage);
    hasBegun = true;
    const accepted = new Promise<void>((resolve, reject) => {
      output.write(messages, (error) => (error ? reject(error) : resolve()));
    });
    await abortable(accepted, signal);
  };
  return { write, end: () => write(endMessage) };
}

/** Yields the record batches of a file of a day, and removes it. A row group is decoded as a whole. */
export async function* recordBatches({ path, recordBatchRows }: DayFile) {
  if (path === undefined) return;
  // 5 MB of WebAssembly, which only this needs.
  const { ParquetFile } = await import('parquet-wasm');
  const file = await ParquetFile.fromFile(await openAsBlob(path));
  try {
    for (const rowGroup of file.metadata().rowGroups().keys()) {
      const table = await file.read({ rowGroups: [rowGroup], batchSize: recordBatchRows });
      const batches = table.recordBatches();
      table.free();
      for (const batch of batches) yield { rows: batch.numRows, messages: messagesOf(batch.intoIPCStream()) };
    }
  } finally {
    file.free();
  }
  await rm(path);
}

/** A message begins with a marker and the length of its metadata, 32 bits each. One of a schema has no body. */
const METADATA_LENGTH_AT = 4;
const METADATA_AT = 8;

/** The messages of a stream without its schema and its end. */
function messagesOf(ipcBytes: Uint8Array): Uint8Array {
  const schemaBytes = new DataView(ipcBytes.buffer, ipcBytes.byteOffset).getInt32(METADATA_LENGTH_AT, true);
  return ipcBytes.subarray(METADATA_AT + schemaBytes, -END_BYTES);
}
