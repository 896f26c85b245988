import { ROW_END_BYTES } from '../../csv/row-source.ts';
import type { SpoolFile } from '../../extract/window.ts';
import { type FileBlock, fileBlocks } from '../rows/row-blocks.ts';
import { BATCH_BYTES } from './build/batch-builder.ts';
import type { ArrowTask, KeyedBlock } from './build/task.ts';
import type { BlockRows } from './window-rows.ts';

/** CSV that one task reads: small against the memory of a worker, large enough for a record batch worth its name. */
const TASK_BYTES = 4 * 1024 * 1024;

/** Bytes of CSV that make no more than a full record batch, where every row takes `rowBytes` beside its cells. */
export function taskBytes(files: readonly SpoolFile[], bytes: number, rowBytes: number): number {
  const rows = files.reduce((sum, file) => sum + file.rows, 0);
  const row = Math.max(1, bytes / Math.max(1, rows));
  return Math.max(1, Math.min(TASK_BYTES, Math.floor((BATCH_BYTES * row) / (rowBytes + row))));
}

export async function* hashTasks(
  files: readonly SpoolFile[],
  bytes: number,
  signal: AbortSignal,
): AsyncGenerator<ArrowTask> {
  for await (const block of blocksOf(files, bytes, signal)) yield { kind: 'hash', block, spare: undefined };
}

/** The blocks of the files, `bytes` a task. `rowsOf`: what is known of the rows of a block, by its number. */
export async function* columnTasks(
  files: readonly SpoolFile[],
  bytes: number,
  rowsOf: (block: number) => BlockRows,
  signal: AbortSignal,
): AsyncGenerator<ArrowTask> {
  let blocks: KeyedBlock[] = [];
  let held = 0;
  let number = 0;
  for await (const block of blocksOf(files, bytes, signal)) {
    if (held > 0 && held + block.to - block.from > bytes) {
      yield { kind: 'columns', blocks, spare: undefined };
      blocks = [];
      held = 0;
    }
    blocks.push({ ...block, ...rowsOf(number++) });
    held += block.to - block.from;
  }
  if (blocks.length > 0) yield { kind: 'columns', blocks, spare: undefined };
}

/** Where a task takes less than a block of the scan, the blocks are computed again. */
function blocksOf(files: readonly SpoolFile[], bytes: number, signal: AbortSignal): AsyncGenerator<FileBlock> {
  return bytes >= ROW_END_BYTES ? fileBlocks(files, signal) : fileBlocks(files, signal, bytes);
}
