import type { SpoolFile } from '../../../extract/window.ts';
import { literal } from '../../../types/sql.ts';
import { READS_IN_PARALLEL } from '../engine/engine.ts';
import { pathLiteral } from '../engine/quote.ts';

/** What DuckDB reads with unless a row is longer. */
const USUAL_LINE_BYTES = 2_000_000;
/** A reader holds several buffers: at DuckDB's 32 MB, 100 MB more than at this size, in the same time (measured). */
const USUAL_BUFFER_BYTES = 4_000_000;
const LINES_PER_BUFFER = 4;

/** The name under which a reader hands on a column: never the header's, which may be anything. */
export const cell = (index: number): string => `c${index}`;

/** The column that a reader of several files adds: the path of the file a row is in. */
export const PATH = '_dfinery_path';

/**
 * `read_csv` of spool files with one header, told everything: nothing is sniffed, padded or skipped. Empty cells, quoted ones
 * too, are NULL. `types`: the reader's type of each column, in the header's order.
 */
export function readCsv(files: readonly Pick<SpoolFile, 'path' | 'longestRow'>[], types: readonly string[]): string {
  const columns = types.map((type, i) => `${literal(cell(i))}: ${literal(type)}`).join(', ');
  const paths = files.map(({ path }) => pathLiteral(path)).join(', ');
  const withPath = files.length > 1 ? `, filename = ${literal(PATH)}` : '';
  const longestRow = Math.max(...files.map((file) => file.longestRow));
  return (
    `read_csv([${paths}], auto_detect = false, header = true, delim = ',', quote = '"', escape = '"', ` +
    `new_line = '\\n', nullstr = '', allow_quoted_nulls = true, strict_mode = true, null_padding = false, ` +
    `ignore_errors = false, parallel = coalesce(getvariable(${literal(READS_IN_PARALLEL)}), true), compression = 'none', ` +
    `encoding = 'utf-8', hive_partitioning = false${lineOptions(longestRow)}${withPath}, columns = {${columns}})`
  );
}

function lineOptions(longestRow: number): string {
  if (longestRow < USUAL_LINE_BYTES) return `, buffer_size = ${USUAL_BUFFER_BYTES}`;
  const line = longestRow + 1;
  return `, max_line_size = ${line}, buffer_size = ${line * LINES_PER_BUFFER}`;
}
