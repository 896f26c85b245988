import { createReadStream } from 'node:fs';
import { codeOf, configError } from '../../base/errors.ts';
import { formatBytes, formatCount, formatPercent } from '../../base/quantities.ts';
import type { ColumnEdits } from '../../cells/columns/column-edits.ts';
import { ExportScanner, type ScanResult } from '../../cells/columns/export-scanner.ts';
import { MalformedCsv, UnusableCsv } from '../../cells/csv/malformed.ts';
import { missingColumns } from '../../cells/header.ts';
import { codecOf, fits } from '../../cells/types/column-types.ts';
import { zoneOf } from '../../cells/types/zone.ts';
import { editsOf } from '../../extract/export-settings.ts';
import { whyUnreadable } from '../../fs/disk-failure.ts';
import { type ColumnSettings, configuredTypeOf } from '../../table/column-type.ts';
import { defineCommand, pathOption, required } from '../command.ts';
import { type CommandConfig, readConfiguration, requireKeys } from '../configuration.ts';
import { readPinnedTypes } from '../pinned-types.ts';
import { tableLines } from '../terminal/layout.ts';

export const command = defineCommand({
  arguments: { file: required(pathOption('The CSV file')) },
  options: { schema: pathOption('Pinned schema, as discover prints it: shows what would be rescued') },
  examples: ['inspect export.csv', 'inspect export.csv --schema schema.json --json'],
  docsPage: 'days-and-types.md',
  async run({ file, schema, config: path }, context) {
    const config = requireKeys(readConfiguration(path, context), 'hash_key');
    const edits = editsOf(config);
    const pinnedTypes = readPinnedTypes(schema);
    const scanner = new ExportScanner({ timezone: config.timezone, needsEventColumns: false, edits });
    const { scan, bytes } = await scanFile(file, scanner, context.signal);
    const missing = missingColumns(scan.columns.map(({ headerName }) => headerName));
    for (const warning of warningsOf(scan, edits, missing))
      context.logger.warn('inspect.columns', `${file} ${warning}.`);
    const columns = inspectedColumns(scan, config, pinnedTypes);
    const result = {
      v: 1,
      file,
      rows: scan.rows,
      bytes,
      final_newline: scan.hasFinalNewline,
      invalid_utf8: { cells: scan.invalidUtf8.cells, first: scan.invalidUtf8.first ?? null },
      missing_columns: missing,
      columns,
    };
    const title = `${file}: ${formatCount(scan.rows, 'row')}, ${formatCount(columns.length, 'column')}, ${formatBytes(bytes)}`;
    const table = columnTable(columns, scan.rows, context.terminal.columns);
    return { result, lines: [title, ...table, ...notesOn(scan)] };
  },
});

/** Scans a file as an export is scanned. Throws a configuration failure for one that is no whole CSV. */
async function scanFile(file: string, scanner: ExportScanner, signal: AbortSignal) {
  let bytes = 0;
  try {
    for await (const chunk of createReadStream(file, { highWaterMark: 1 << 20, signal })) {
      bytes += chunk.length;
      scanner.push(chunk);
    }
    return { scan: scanner.finish().scan, bytes };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof MalformedCsv) throw configError(`${file} is no whole CSV file: ${error.clause}.`);
    if (error instanceof UnusableCsv) throw configError(`${file} has ${error.mismatch}: convert it first.`);
    if (codeOf(error) === undefined) throw error;
    throw configError(`${file} cannot be read: ${whyUnreadable(error)}.`, { cause: error });
  }
}

/** What is wrong with the columns, as clauses. `missing`: the columns of every export that the file lacks. */
function warningsOf({ editedNames }: ScanResult, { drop, hash }: ColumnEdits, missing: readonly string[]): string[] {
  const unseenNames = [...drop, ...hash].filter((name) => !editedNames.includes(name));
  const warnings = [
    unseenNames.length > 0 && `lacks columns of columns_drop and columns_hash: ${unseenNames.join(', ')}`,
    missing.length > 0 && `lacks columns that every export of events has: ${missing.join(', ')}`,
  ];
  return warnings.filter((warning) => warning !== false);
}

/** The type of a column is that of the settings, else that of the cells, else null. Cells that do not fit are rescued. */
function inspectedColumns(
  { columns }: ScanResult,
  { columnTypes, timezone }: CommandConfig,
  pinnedTypes: ColumnSettings['pinnedTypes'],
) {
  const zone = zoneOf(timezone);
  return columns.map((column) => {
    const type = configuredTypeOf(column, columns, { columnTypes, pinnedTypes }) ?? column.type ?? null;
    // The cells of a text column of the service are not examined.
    const isExamined = column.declaredType !== 'string' || type === 'string';
    const allFit = type === null || (isExamined ? fits(codecOf(type, zone), column.forms) : null);
    return { source: column.headerName, group: column.group, type, filled: column.filledCount, fits: allFit };
  });
}

function columnTable(columns: ReturnType<typeof inspectedColumns>, rows: number, width: number): string[] {
  const tableRows = columns.map(({ source, group, type, filled, fits: allFit }) => [
    source,
    group.replaceAll('_', ' '),
    type ?? '',
    formatPercent(filled, rows),
    allFit === null ? 'not known' : allFit ? '' : 'some cells',
  ]);
  return tableLines(['column', 'group', 'type', 'filled', 'rescued'], tableRows, width);
}

function notesOn({ invalidUtf8: { cells, first }, hasUniqueIds, hasFinalNewline }: ScanResult): string[] {
  const where = first === undefined ? '' : `, the first in row ${first.row}, column ${first.column}`;
  const notes = [
    !hasUniqueIds && 'Perhaps some rows have no id, or one that an earlier row has: all are kept.',
    cells > 0 && `${formatCount(cells, 'cell')} not valid UTF-8${where}: kept, with U+FFFD in place of the bad bytes.`,
    !hasFinalNewline && 'The last row has no line end: perhaps the file was cut there.',
  ];
  return notes.filter((note) => note !== false);
}
