import type { SpoolFile } from '../../../extract/window.ts';
import { literal } from '../../../types/sql.ts';
import { pathLiteral } from '../engine/quote.ts';

/** What DuckDB reads with unless a row is longer. */
const USUAL_LINE_BYTES = 2_000_000;
const LINES_PER_BUFFER = 4;

/** The name under which a reader hands on a column: never the header's, which may be anything. */
export const cell = (index: number): string => `c${index}`;

/**
 * `read_csv` of one spool file, told everything: nothing is sniffed, padded or skipped. Empty cells, quoted ones too, are
 * NULL. `types`: the reader's type of each column, in the header's order.
 */
export function readCsv(file: Pick<SpoolFile, 'path' | 'longestRow'>, types: readonly string[]): string {
  const columns = types.map((type, i) => `${literal(cell(i))}: ${literal(type)}`).join(', ');
  return (
    `read_csv(${pathLiteral(file.path)}, auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', ` +
    `new_line = '\\n', nullstr = '', allow_quoted_nulls = true, strict_mode = true, null_padding = false, ` +
    `ignore_errors = false, parallel = true, compression = 'none', encoding = 'utf-8', hive_partitioning = false${lineOptions(file.longestRow)}, ` +
    `columns = {${columns}})`
  );
}

function lineOptions(longestRow: number): string {
  if (longestRow < USUAL_LINE_BYTES) return '';
  const line = longestRow + 1;
  return `, max_line_size = ${line}, buffer_size = ${line * LINES_PER_BUFFER}`;
}
