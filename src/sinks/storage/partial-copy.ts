import { open } from 'node:fs/promises';
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync } from 'hyparquet';
import { OWNER_FILE } from '../../fs/atomic-file.ts';
import type { ParquetPart } from './storage.ts';

/** Bytes. */
const SMALL_BYTES = 2 * 1024 * 1024;
/** Bytes of the end that are read for the footer; a longer one costs a second request. */
const FOOTER_BYTES = 128 * 1024;
/** Bytes between two pieces that are read with them rather than by a request of their own. */
const MAX_GAP = 256 * 1024;
/** Bytes of one request, and of what is held in memory. */
const MAX_PIECE = 16 * 1024 * 1024;

interface Piece {
  readonly from: number;
  readonly to: number;
}

/** True for a file that is not worth more than one request: it is copied whole. */
export const isSmall = ({ bytes }: ParquetPart): boolean => bytes <= SMALL_BYTES;

/**
 * Makes a local file from which a reader of Parquet can take these columns: of the size of the stored one, with its footer and
 * the bytes of the columns where they belong; the rest is a hole that takes no disk. `readRange`: gives the bytes [from, to).
 */
export async function copyColumns(
  readRange: (from: number, to: number) => Promise<Buffer>,
  { bytes, columns }: ParquetPart,
  copy: string,
): Promise<void> {
  const file = await open(copy, 'wx', OWNER_FILE);
  try {
    await file.truncate(bytes);
    const take = async (from: number, to: number): Promise<Buffer> => {
      const found = await readRange(from, to);
      await file.write(found, 0, found.length, from);
      return found;
    };
    const footer: AsyncBuffer = {
      byteLength: bytes,
      slice: async (from, to = bytes) => new Uint8Array(await take(from, to)).buffer,
    };
    const metadata = await parquetMetadataAsync(footer, { initialFetchSize: FOOTER_BYTES });
    for (const { from, to } of piecesOf(metadata, columns)) await take(from, to);
  } finally {
    await file.close();
  }
}

/** The bytes of the columns in all row groups, neighbours together, none larger than `MAX_PIECE`. */
function piecesOf({ row_groups: groups }: FileMetaData, columns: ReadonlySet<string>): Piece[] {
  const chunks = groups
    .flatMap((group) => group.columns.flatMap(({ meta_data: data }) => data ?? []))
    .filter((data) => columns.has(data.path_in_schema[0] ?? ''))
    .map((data) => {
      const from = Number(data.dictionary_page_offset ?? data.data_page_offset);
      return { from, to: from + Number(data.total_compressed_size) };
    })
    .sort((a, b) => a.from - b.from);
  const pieces: { from: number; to: number }[] = [];
  for (const { from, to } of chunks) {
    const last = pieces.at(-1);
    if (last !== undefined && from - last.to <= MAX_GAP) last.to = Math.max(last.to, to);
    else pieces.push({ from, to });
  }
  return pieces.flatMap(({ from, to }) =>
    Array.from({ length: Math.ceil((to - from) / MAX_PIECE) }, (_, i) => {
      const start = from + i * MAX_PIECE;
      return { from: start, to: Math.min(to, start + MAX_PIECE) };
    }),
  );
}
