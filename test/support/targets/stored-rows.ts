import type { Cells as TrueRow } from '../service/test-service.ts';
import { query } from './query.ts';

/*
 * What a DuckDB file should hold for the rows of a service, told without any code of the project: each cell is read here
 * a second time, by rules of the test's own.
 */

/** One row of `events`: the text of every cell by its name in the export, made comparable. */
interface StoredRow {
  readonly id: string;
  readonly cells: ReadonlyMap<string, string>;
}

interface StoredColumn {
  readonly source: string;
  readonly name: string;
  readonly type: string;
}

export interface Stored {
  readonly rows: readonly StoredRow[];
  readonly types: ReadonlyMap<string, string>;
  readonly rescued: number;
}

const quotedName = (name: string) => `"${name.replaceAll('"', '""')}"`;

/** Reads the table back, with datetimes as ms since 1970. */
export async function storedIn(file: string): Promise<Stored> {
  const map = await query(
    file,
    `SELECT source_name AS source, table_name AS name, type FROM _dfinery_columns WHERE type IS NOT NULL ORDER BY position`,
  );
  const columns = map as unknown[] as StoredColumn[];
  const fields = columns.map(({ name, type }, i) => {
    if (type === 'datetime') return `epoch_ms(${quotedName(name)}) AS c${i}`;
    return `${quotedName(name)} AS c${i}`;
  });
  const rows = await query(file, `SELECT ${fields.join(', ')}, CAST(_rescued AS VARCHAR) AS rescued FROM events`);
  return storedOf(rows, columns);
}

/** Rows of a query whose column `cN` is column N of these, and whose `rescued` is the text of `_rescued`. */
function storedOf(
  rows: readonly Readonly<Record<string, unknown>>[],
  columns: readonly Pick<StoredColumn, 'source' | 'type'>[],
): Stored {
  return {
    rows: rows.map((row) => rowOf(row, columns)),
    types: new Map(columns.map(({ source, type }) => [source, type])),
    rescued: rows.filter((row) => row.rescued !== null).length,
  };
}

function rowOf(
  row: Readonly<Record<string, unknown>>,
  columns: readonly Pick<StoredColumn, 'source' | 'type'>[],
): StoredRow {
  const cells = new Map<string, string>();
  for (const [i, { source, type }] of columns.entries()) {
    const value = row[`c${i}`];
    if (value !== null) cells.set(source, shown(value, type));
  }
  if (typeof row.rescued === 'string') {
    for (const [name, text] of Object.entries(JSON.parse(row.rescued) as object)) cells.set(name, String(text));
  }
  return { id: cells.get('df_event_detail_log_id') ?? '', cells };
}

function shown(value: unknown, type: string): string {
  if (Array.isArray(value)) return `[${value.map((one) => shown(one, type.slice(0, -2))).join('|')}]`;
  return type === 'double' ? String(Number(value)) : String(value);
}

/** What a cell of the service should have become in a column of that type. */
function expectedCell(text: string, type: string | undefined, zoneHours: number | undefined): string[] {
  if (type === 'string' || type === undefined) return [text, ...respelled(text)];
  if (text === 'null') return [];
  switch (type) {
    case 'boolean':
      return [text.toLowerCase()];
    case 'long':
      return [text];
    case 'double':
      return [String(Number(text))];
    case 'date':
      return [text];
    case 'datetime':
      return [String(instantOf(text, zoneHours))];
    default:
      return [`[${listOf(text).join('|')}]`];
  }
}

/** Widening to text keeps values, not spellings. */
function respelled(text: string): string[] {
  if (/^(true|false)$/i.test(text)) return [text.toUpperCase()];
  if (/^-?\d+(\.\d+)?(E-?\d+)?$/.test(text)) return [String(Number(text)), Number(text).toFixed(1)];
  return [];
}

/** Elements as JSON has them, but for numbers: their digits as they stand. */
function listOf(text: string): string[] {
  const inner = text.trim().slice(1, -1);
  if (/^[\d.,\s-]*$/.test(inner))
    return inner
      .split(',')
      .filter(Boolean)
      .map((one) => one.trim());
  return (JSON.parse(text) as unknown[]).map(String);
}

function instantOf(text: string, zoneHours: number | undefined): number {
  if (text.endsWith('Z')) return Date.parse(text);
  const [y, mo, d, h, mi, s = '0'] = text.split(/[.\- :T]/).map(String);
  const ms = /\.(\d{3})$/.exec(text)?.[1] ?? '0';
  const short = /^\d+\.\d+\.\d+ /.test(text);
  const utc = Date.UTC(
    Number(y),
    Number(mo) - 1,
    Number(d),
    Number(h),
    Number(mi),
    short ? 0 : Number(s),
    short ? 0 : Number(ms),
  );
  return utc - (zoneHours ?? 0) * 3_600_000;
}

export interface Differences {
  missing: number;
  doubled: number;
  wrong: number;
  strange: number;
  readonly examples: string[];
}

/**
 * Compares the rows there should be with those there are. `maybe` are rows that may be there as well, in any state.
 */
export function compareRows(
  stored: Stored,
  truth: Iterable<TrueRow>,
  maybe: Iterable<TrueRow>,
  zoneHours?: number,
): Differences {
  const out: Differences = { missing: 0, doubled: 0, wrong: 0, strange: 0, examples: [] };
  const wanted = groupOf([...truth].map(renamed));
  const open = groupOf([...maybe].map(renamed));
  const found = grouped(stored.rows, ({ id }) => id);
  for (const [id, rows] of wanted) {
    const there = found.get(id) ?? [];
    found.delete(id);
    if (there.length < rows.length) out.missing += rows.length - there.length;
    if (there.length > rows.length) out.doubled += there.length - rows.length;
    const left = [...there];
    for (const row of rows) {
      const at = left.findIndex((one) => problem(row, one, stored, zoneHours) === undefined);
      if (at !== -1) left.splice(at, 1);
      else if (there.length > 0) {
        out.wrong++;
        out.examples.push(`${id}: ${problem(row, left[0] ?? there[0], stored, zoneHours)}`);
      } else out.examples.push(`${id} is missing`);
    }
    if (there.length > rows.length) out.examples.push(`${id} is there ${there.length} times, wanted ${rows.length}`);
  }
  for (const [id, rows] of found) {
    const extra = rows.length - (open.get(id)?.length ?? 0);
    if (extra <= 0) continue;
    out.strange += extra;
    out.examples.push(`${id} is there and should not be`);
  }
  return out;
}

function renamed(row: TrueRow): TrueRow {
  const name = row.get('event_name');
  if (name === undefined || row.has('df_event_name')) return row;
  const out = new Map(row).set('df_event_name', name);
  out.delete('event_name');
  return out;
}

const groupOf = (rows: readonly TrueRow[]) => grouped(rows, (row) => row.get('df_event_detail_log_id') ?? '');

function grouped<T>(items: readonly T[], of: (item: T) => string): Map<string, T[]> {
  const out = new Map<string, T[]>();
  for (const item of items) {
    const group = out.get(of(item));
    if (group === undefined) out.set(of(item), [item]);
    else group.push(item);
  }
  return out;
}

function problem(row: TrueRow, stored: StoredRow, { types }: Stored, zoneHours?: number): string | undefined {
  for (const [name, text] of row) {
    const wanted = expectedCell(text, types.get(name), zoneHours);
    const cell = stored.cells.get(name);
    if (cell === text || (cell === undefined ? wanted.length === 0 : wanted.includes(cell))) continue;
    if (cell === undefined && types.get(name) === undefined && text === 'null') continue;
    return `${name} (${types.get(name)}) is ${cell}, wanted ${wanted.join(' or ') || 'nothing'} for ${text}`;
  }
  for (const [name, cell] of stored.cells) if (!row.has(name)) return `${name} is ${cell}, wanted nothing`;
  return undefined;
}
