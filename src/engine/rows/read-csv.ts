import { literal } from '../../cells/types/sql.ts';
import type { SpoolFile } from '../../extract/receipt.ts';
import { READS_IN_PARALLEL } from '../session/engine.ts';
import { pathLiteral } from '../session/quote.ts';

/** Maximum length of a line with which DuckDB reads, unless a row is longer. */
const USUAL_LINE_BYTES = 2_000_000;
/** Bytes of each of a reader's buffers: DuckDB's 32 MB take 100 MB more and the same time (measured). */
const USUAL_BUFFER_BYTES = 4_000_000;
const LINES_PER_BUFFER = 4;

/** The name of a column in a reader's result; the header's name may contain anything. */
export const cell = (index: number): string => `c${index}`;

/** The column that a reader of several files adds: the path of the row's file. */
export const PATH_COLUMN = '_dfinery_path';

/**
 * `read_csv` of spool files with one header, with every option set, so that nothing is sniffed, padded or skipped.
 * Empty cells, quoted ones too, are NULL. `types` has the reader's type of each column, in the header's order.
 */
export function readCsv(files: readonly Pick<SpoolFile, 'path' | 'longestRow'>[], types: readonly string[]): string {
  const columns = types.map((type, i) => `${literal(cell(i))}: ${literal(type)}`).join(', ');
  const paths = files.map(({ path }) => pathLiteral(path)).join(', ');
  const withPath = files.length > 1 ? `, filename = ${literal(PATH_COLUMN)}` : '';
  const longestRow = Math.max(...files.map((file) => file.longestRow));
  return `read_csv(
    [${paths}],
    auto_detect = false, header = true,
    delim = ',', quote = '"', escape = '"', new_line = '\\n', compression = 'none', encoding = 'utf-8',
    nullstr = '', allow_quoted_nulls = true,
    strict_mode = true, null_padding = false, ignore_errors = false,
    parallel = coalesce(getvariable(${literal(READS_IN_PARALLEL)}), true),
    hive_partitioning = false${withPath},
    ${lineOptions(longestRow)},
    columns = {${columns}}
  )`;
}

function lineOptions(longestRow: number): string {
  if (longestRow < USUAL_LINE_BYTES) return `buffer_size = ${USUAL_BUFFER_BYTES}`;
  const line = longestRow + 1;
  return `max_line_size = ${line}, buffer_size = ${line * LINES_PER_BUFFER}`;
}
