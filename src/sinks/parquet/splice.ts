import { type FileHandle, open } from 'node:fs/promises';
import { readStruct, type Thrift, type ThriftFields, writeStruct } from './thrift.ts';

/** What a Parquet file begins and ends with. */
const MAGIC = Buffer.from('PAR1');
const LENGTH_BYTES = 4;
const COPY_BYTES = 1 << 20;
const OWNER_FILE = 0o600;

/** Field ids of Parquet's metadata that are offsets into the file, or lead to some. */
const FILE = { rows: 3, groups: 4 } as const;
const GROUP = { columns: 1, offset: 5, ordinal: 7 } as const;
const CHUNK = { offset: 2, metadata: 3, offsetIndex: 4, columnIndex: 6 } as const;
const COLUMN = { data: 9, index: 10, dictionary: 11, bloom: 14 } as const;

interface Part {
  readonly file: FileHandle;
  readonly footer: ThriftFields;
  /** Where the footer begins. */
  readonly end: number;
}

/**
 * Makes one Parquet file of the row groups of several, in order, without decoding any: their bytes one behind the other
 * and a footer that knows where they are now. The parts have one schema; the first one's metadata are kept.
 */
export async function splice(paths: readonly string[], target: string): Promise<void> {
  const out = await open(target, 'wx', OWNER_FILE);
  const parts: Part[] = [];
  try {
    for (const path of paths) parts.push(await openPart(path));
    await out.write(MAGIC);
    let at = MAGIC.length;
    let rows = 0n;
    const groups: Thrift[] = [];
    for (const { file, footer, end } of parts) {
      const shift = BigInt(at - MAGIC.length);
      rows += integer(footer.get(FILE.rows));
      for (const group of itemsOf(footer.get(FILE.groups))) groups.push(movedGroup(group, shift, groups.length));
      at = await copy(file, MAGIC.length, end, out, at);
    }
    const [{ footer: first }] = parts;
    const footer = writeStruct(
      new Map(first).set(FILE.rows, { type: 6, value: rows }).set(FILE.groups, { type: 9, of: 12, items: groups }),
    );
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32LE(footer.length);
    await out.write(Buffer.concat([footer, length, MAGIC]));
  } finally {
    await out.close();
    for (const { file } of parts) await file.close();
  }
}

async function openPart(path: string): Promise<Part> {
  const file = await open(path, 'r');
  try {
    return { file, ...(await readFooter(file)) };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function readFooter(file: FileHandle): Promise<Omit<Part, 'file'>> {
  const { size } = await file.stat();
  const from = size - LENGTH_BYTES - MAGIC.length;
  if (from < MAGIC.length) throw new RangeError('a part that is no Parquet file');
  const tail = await readAt(file, from, LENGTH_BYTES + MAGIC.length);
  if (!tail.subarray(LENGTH_BYTES).equals(MAGIC)) throw new RangeError('a part that is no Parquet file');
  const length = tail.readUInt32LE();
  const end = from - length;
  if (end < MAGIC.length) throw new RangeError('a part whose footer is longer than it is');
  return { footer: readStruct(await readAt(file, end, length)), end };
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let read = 0;
  while (read < length) {
    const { bytesRead } = await file.read(buffer, read, length - read, position + read);
    if (bytesRead === 0) throw new RangeError('a part that is cut');
    read += bytesRead;
  }
  return buffer;
}

/** Copies [from, to) of a file to the end of another, `at`; gives the new end. */
async function copy(file: FileHandle, from: number, to: number, out: FileHandle, at: number): Promise<number> {
  for (let position = from; position < to; ) {
    const bytes = await readAt(file, position, Math.min(COPY_BYTES, to - position));
    await out.writeFile(bytes);
    position += bytes.length;
  }
  return at + to - from;
}

function movedGroup(group: Thrift, shift: bigint, ordinal: number): Thrift {
  const fields = new Map(fieldsOf(group));
  move(fields, [GROUP.offset], shift);
  if (fields.has(GROUP.ordinal)) fields.set(GROUP.ordinal, { type: 4, value: BigInt(ordinal) });
  const items = itemsOf(fields.get(GROUP.columns)).map((chunk) => movedChunk(chunk, shift));
  return { type: 12, fields: fields.set(GROUP.columns, { type: 9, of: 12, items }) };
}

function movedChunk(chunk: Thrift, shift: bigint): Thrift {
  const fields = new Map(fieldsOf(chunk));
  move(fields, [CHUNK.offset, CHUNK.offsetIndex, CHUNK.columnIndex], shift);
  const column = fields.get(CHUNK.metadata);
  if (column !== undefined) {
    const metadata = new Map(fieldsOf(column));
    move(metadata, [COLUMN.data, COLUMN.index, COLUMN.dictionary, COLUMN.bloom], shift);
    fields.set(CHUNK.metadata, { type: 12, fields: metadata });
  }
  return { type: 12, fields };
}

/** Offsets that are 0 say that there is nothing, as some writers have it. */
function move(fields: Map<number, Thrift>, ids: readonly number[], shift: bigint): void {
  for (const id of ids) {
    const field = fields.get(id);
    if (field === undefined || !('value' in field) || typeof field.value !== 'bigint' || field.value === 0n) continue;
    fields.set(id, { type: 6, value: field.value + shift });
  }
}

function integer(field: Thrift | undefined): bigint {
  return field !== undefined && 'value' in field && typeof field.value === 'bigint' ? field.value : 0n;
}

const itemsOf = (field: Thrift | undefined): readonly Thrift[] => (field && 'items' in field ? field.items : []);
const fieldsOf = (field: Thrift): ThriftFields => ('fields' in field ? field.fields : new Map());
