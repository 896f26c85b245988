import { open } from 'node:fs/promises';
import { type AsyncBuffer, type FileMetaData, parquetMetadataAsync } from 'hyparquet';
import { OWNER_FILE } from '../fs/atomic-file.ts';
import type { ParquetPart } from './storage.ts';

/** Maximum size of a file that is copied whole (bytes). */
const SMALL_BYTES = 2 * 1024 * 1024;
/** Number of bytes at the end of a file that are read for the footer; a longer footer costs a second request. */
const FOOTER_BYTES = 128 * 1024;
/** Maximum number of bytes between two pieces that are read together in one request. */
const MAX_GAP = 256 * 1024;
/** Maximum number of bytes of one request, which are held in memory. */
const MAX_PIECE = 16 * 1024 * 1024;

interface Piece {
  readonly from: number;
  readonly to: number;
}

/** True for a file so small that it is copied whole. */
export const isSmall = ({ bytes }: ParquetPart): boolean => bytes <= SMALL_BYTES;

/**
 * Makes a local file of the size of the stored one, with its footer and the bytes of these columns at their places; the
 * rest is a hole that takes no disk space. `readRange` gives the bytes [from, to).
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

/** The pieces of the file with the columns; neighbours are joined, up to `MAX_PIECE`. */
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
