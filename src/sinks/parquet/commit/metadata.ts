import type { Receipt } from '../../../extract/window.ts';
import { type StoredColumn, typedColumns } from '../../../table/columns.ts';
import type { Metadata } from '../../sql/files/parquet-file.ts';
import { WRITER } from '../dataset/dataset.ts';
import type { LiveReceipt } from '../dataset/manifest.ts';

type WrittenReceipt = Receipt & Pick<LiveReceipt, 'window'>;

/** What every file says of itself, as texts: who wrote it, what its columns are, the last window that touched it. */
export function metadataOf(columns: readonly StoredColumn[], receipt: WrittenReceipt | undefined): Metadata {
  const described = typedColumns(columns).map(({ name, source, group, type, itemName }) => ({
    name,
    source,
    group,
    type,
    ...(itemName !== null && { item_name: itemName }),
  }));
  return {
    'dfinery.version': WRITER,
    'dfinery.columns': JSON.stringify(described),
    ...(receipt !== undefined && { 'dfinery.window': windowText(receipt), 'dfinery.receipt': receiptText(receipt) }),
  };
}

function windowText({ window, from, to, covers_from, covers_to }: WrittenReceipt): string {
  return JSON.stringify({ window, from, to, covers_from, covers_to });
}

/** Without the header and the scans, which the columns tell better, and without the counts that depend on other windows. */
function receiptText(receipt: WrittenReceipt & Partial<LiveReceipt>): string {
  const {
    header: _header,
    columns: _columns,
    rows_live: _live,
    id_repeats: _repeats,
    window: _window,
    ...rest
  } = receipt;
  return JSON.stringify(rest);
}
