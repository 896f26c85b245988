import { parse } from 'csv-parse/sync';
import type { HashKey } from '../../src/base/hash-key.ts';
import type { ColumnEdits } from '../../src/cells/columns/column-edits.ts';
import type { ExportScanner, ScanResult } from '../../src/cells/columns/export-scanner.ts';

export const columnEdits = (
  drop: readonly string[],
  hash: readonly string[],
  hashKey: HashKey | undefined,
): ColumnEdits => ({
  drop: new Set(drop),
  hash: new Set(hash),
  hashKey,
});

/** Feeds a body to a scanner, cut at these rising offsets; the written bytes are copied at once, as a file would. */
export function scanIn(
  scanner: ExportScanner,
  body: Uint8Array,
  cuts: readonly number[] = [],
): { result: ScanResult; written: Buffer } {
  const parts: Buffer[] = [];
  let from = 0;
  for (const to of [...cuts, body.length]) {
    parts.push(Buffer.from(scanner.push(body.subarray(from, to))));
    from = to;
  }
  const { scan, tail } = scanner.finish();
  return { result: scan, written: Buffer.concat([...parts, tail]) };
}

/** All rows of a normalised file, by another parser, which skips blank lines as DuckDB does. */
export function readBack(written: Uint8Array): string[][] {
  return parse(Buffer.from(written), { record_delimiter: '\n', relax_column_count: true, skip_empty_lines: true });
}
