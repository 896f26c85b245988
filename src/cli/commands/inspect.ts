import { configError, EXIT } from '../../base/errors.ts';
import { groupBy } from '../../base/group.ts';
import { count, formatBytes, grouped } from '../../base/quantities.ts';
import { TYPES } from '../../cells/types/index.ts';
import { COLUMN_GROUPS, type ColumnGroup } from '../../cells/types/known-columns.ts';
import { isZoneName } from '../../cells/types/zone.ts';
import type { ColumnProfile, FileProfile } from '../../engine/profile.ts';
import { editsOf } from '../../extract/session.ts';
import { argument, defineCommand, printResult, required, text } from '../command.ts';
import { loadOfflineConfig, pinnedTypes } from '../configuration.ts';
import { tableLines, truncate } from '../table.ts';

export const command = defineCommand({
  options: {
    file: argument(required(text('The CSV file'))),
    schema: text('Pinned schema, as discover prints it: shows what would be rescued'),
    timezone: text('IANA zone of the datetimes without one'),
  },
  examples: ['inspect export.csv', 'inspect export.csv --schema schema.json --json'],
  page: 'types.md',
  async run({ file, schema, timezone, config: path, json }, context) {
    const config = loadOfflineConfig(path, context);
    const { profileFile } = await import('../../engine/profile.ts');
    const profile = await profileFile({
      edits: editsOf(config),
      file,
      timezone: zoneOption(timezone),
      pinned: pinnedTypes(schema),
      clock: context.clock,
      signal: context.signal,
    });
    const { unlisted, missing } = profile;
    if (unlisted.length > 0) {
      const message = `columns_drop and columns_hash name columns that ${file} does not have: ${unlisted.join(', ')}.`;
      context.logger.warn('columns.unseen', message);
    }
    if (missing.length > 0) {
      const message = `${file} lacks columns that every export has: ${missing.join(', ')}.`;
      context.logger.warn('inspect.missing', message);
    }
    printResult(asJson(file, profile), asLines(file, profile, context.terminal.columns), json, context);
    return EXIT.done;
  },
});

function zoneOption(name: string | undefined): string | undefined {
  if (name === undefined || isZoneName(name)) return name;
  throw configError(`--timezone is ${JSON.stringify(name)}, wanted an IANA name such as Asia/Seoul.`);
}

function asJson(file: string, profile: FileProfile) {
  return {
    v: 1,
    file,
    rows: profile.rows,
    bytes: profile.bytes,
    final_newline: profile.finalNewline,
    invalid_utf8: { cells: profile.invalidUtf8.cells, first: profile.invalidUtf8.first ?? null },
    missing_columns: profile.missing,
    repeated_ids: profile.repeatedIds,
    rows_without_id: profile.missingIds,
    rescued_cells: rescuedCells(profile),
    columns: profile.columns.map(({ filled, ...column }) => ({
      ...column,
      filled,
      fill_rate: profile.rows === 0 ? 0 : filled / profile.rows,
    })),
  };
}

const rescuedCells = ({ columns }: FileProfile): number => columns.reduce((sum, column) => sum + column.rescued, 0);

function asLines(file: string, profile: FileProfile, terminalColumns: number): string[] {
  const { rows, columns, bytes } = profile;
  const table = profileLines(profile, terminalColumns);
  const notes = notesOf(profile);
  return [
    `${file}: ${count(rows, 'row')}, ${count(columns.length, 'column')}, ${formatBytes(bytes)}`,
    ...(table.length > 0 ? ['', ...table] : []),
    ...(notes.length > 0 ? ['', ...notes] : []),
  ];
}

function notesOf(profile: FileProfile): string[] {
  const { cells, first } = profile.invalidUtf8;
  const where = first === undefined ? '' : `, the first in row ${first.row}, column ${first.column}`;
  const rescued = profile.columns.filter((column) => column.rescued > 0);
  const empty = profile.columns.filter((column) => column.filled === 0).map(({ source }) => truncate(source, MAX_NAME));
  const more = empty.length > MAX_EMPTY ? ` and ${grouped(empty.length - MAX_EMPTY)} more` : '';
  const notes = [
    empty.length > 0 &&
      `Without a value (${count(empty.length, 'column')}): ${empty.slice(0, MAX_EMPTY).join(', ')}${more}.`,
    rescued.length > 0 &&
      `${count(rescuedCells(profile), 'cell')} would be rescued: ${rescued.map((c) => `${c.source} (${c.type})`).join(', ')}.`,
    profile.repeatedIds > 0 &&
      `${count(profile.repeatedIds, 'row')} with an id that an earlier row has: kept, under _key with #2, #3…`,
    profile.missingIds > 0 && `${count(profile.missingIds, 'row')} without an id: kept, under a hash of the cells.`,
    cells > 0 && `${count(cells, 'cell')} not valid UTF-8${where}: kept, with U+FFFD in place of the bad bytes.`,
    !profile.finalNewline && 'The last row has no line end: perhaps the file was cut there.',
  ];
  return notes.filter((note): note is string => note !== false);
}

const TITLES = {
  unified_id: 'Unified ID',
  system: 'System',
  standard: 'Standard',
  standard_item: 'Standard items',
  custom_item: 'Custom items',
  custom: 'Custom',
} as const satisfies Record<ColumnGroup, string>;

const MAX_NAME = 24;
const MAX_EMPTY = 30;

/** The columns with a value, by group, as a table for a terminal of that width. */
function profileLines({ columns, rows }: FileProfile, terminalColumns: number): string[] {
  const filled = columns.filter((column) => column.filled > 0);
  if (filled.length === 0) return [];
  const hasRescued = filled.some((column) => column.rescued > 0);
  const lineOf = (column: ColumnProfile) => [
    `  ${truncate(column.source, MAX_NAME)}`,
    column.type ?? '',
    percent(column.filled, rows),
    grouped(column.distinct),
    ...(hasRescued ? [column.rescued > 0 ? grouped(column.rescued) : ''] : []),
    describeValues(column),
  ];
  const groups = groupBy(filled, ({ group }) => group);
  const lines = COLUMN_GROUPS.flatMap((group) => {
    const own = groups.get(group);
    return own === undefined ? [] : [[TITLES[group]], ...own.map(lineOf)];
  });
  const header = ['column', 'type', 'filled', 'distinct ≈', ...(hasRescued ? ['rescued'] : []), 'values'];
  return tableLines(header, lines, { cell: terminalColumns, line: terminalColumns });
}

/** Minimum and maximum where the type of a column has an order, else examples. */
function describeValues({ type, minimum, maximum, examples }: ColumnProfile): string {
  const hasRange = type !== null && TYPES[type].range === 'table' && minimum !== null && maximum !== null;
  if (!hasRange) return examples.join(' | ');
  return minimum === maximum ? minimum : `${minimum} … ${maximum}`;
}

/** 0% means none, and 100% all. */
function percent(part: number, all: number): string {
  if (part === 0 || all === 0) return '0%';
  if (part === all) return '100%';
  return `${Math.min(99.9, Math.max(0.1, (part / all) * 100)).toFixed(1)}%`;
}
