import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { codeOf, configError, messageOf, UserError } from '../base/errors.ts';
import { type ColumnEdits, unlisted } from '../cells/columns/column-edits.ts';
import { DETAIL_LOG_ID, missingColumns } from '../cells/columns/groups.ts';
import { type CellPosition, Scanner, type ScanResult } from '../cells/columns/scanner.ts';
import { MalformedCsv } from '../cells/csv/malformed.ts';
import { TYPES } from '../cells/types/index.ts';
import type { ColumnGroup } from '../cells/types/known-columns.ts';
import { literal } from '../cells/types/sql.ts';
import type { ColumnType } from '../cells/types/type.ts';
import { type Zone, zoneOf } from '../cells/types/zone.ts';
import { SpoolWriter } from '../extract/spool/spool-writer.ts';
import { FIRST_COLUMNS } from '../table/columns.ts';
import { incomingColumns } from '../table/incoming.ts';
import { planColumns, type Rules } from '../table/plan.ts';
import type { PlaceOptions } from '../targets/place-options.ts';
import { type CellSql, cellSql } from './rows/cells.ts';
import { cell, readCsv } from './rows/file-query.ts';
import type { Engine } from './session/engine.ts';
import { engineError } from './session/faults.ts';
import { openEngine } from './session/open.ts';

interface ProfileOptions extends Pick<PlaceOptions, 'memoryLimit' | 'clock'> {
  readonly file: string;
  /** IANA name of the zone of datetimes that carry none. */
  readonly timezone: string | undefined;
  /** Columns that are dropped or hashed before anything else sees them. */
  readonly edits?: ColumnEdits | undefined;
  /** Types by source name, which replace those of the declaration and of the data. */
  readonly pinned: ReadonlyMap<string, ColumnType> | undefined;
  readonly signal: AbortSignal;
}

/** The contents of one column of a file; texts are cut at 200 characters. */
export interface ColumnProfile {
  readonly source: string;
  readonly group: ColumnGroup;
  /** Type of the column; null while every cell is absent. */
  readonly type: ColumnType | null;
  /** Number of cells with a value; the text `null` is a value in text columns alone. */
  readonly filled: number;
  /** Estimated number of different values, up to a quarter off (measured). */
  readonly distinct: number;
  /** Canonical text of the minimum; null for lists. */
  readonly minimum: string | null;
  readonly maximum: string | null;
  /** The most frequent cells as they are written, the most frequent first. */
  readonly examples: readonly string[];
  readonly rescued: number;
}

type Measured = Omit<ColumnProfile, 'source' | 'group'>;

export interface FileProfile {
  /** Number of data rows, without the header. */
  readonly rows: number;
  readonly bytes: number;
  readonly finalNewline: boolean;
  readonly invalidUtf8: { readonly cells: number; readonly first?: CellPosition };
  /** Columns that every export has and this file lacks. */
  readonly missing: readonly string[];
  /** Names of dropped and hashed columns that the file lacks. */
  readonly unlisted: readonly string[];
  /** Number of rows whose `df_event_detail_log_id` an earlier row has, and of rows without one. */
  readonly repeatedIds: number;
  readonly missingIds: number;
  readonly columns: readonly ColumnProfile[];
}

/** Describes a CSV file, which is read whole. Throws a configuration failure for one that is no whole CSV. */
export async function profileFile(options: ProfileOptions): Promise<FileProfile> {
  const folder = await mkdtemp(join(tmpdir(), 'dfinery-elt-inspect-'));
  try {
    const path = join(folder, 'file.csv');
    const { scan, bytes } = await scanFile(options, path, folder);
    const engine = await openEngine({ ...options, file: join(folder, 'inspect.duckdb'), lockWaitMs: 0 });
    try {
      return await profile(engine, scan, { path, bytes }, options);
    } catch (error) {
      options.signal.throwIfAborted();
      throw engineError(error, options.file);
    } finally {
      await engine.close();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Scans the file while a copy of it is written, normalised for the reader. */
async function scanFile(options: ProfileOptions, path: string, folder: string) {
  const scanner = new Scanner({ timezone: options.timezone, requireSystem: false, edits: options.edits });
  const writer = await SpoolWriter.create(path, folder);
  try {
    let bytes = 0;
    for await (const chunk of createReadStream(options.file, { highWaterMark: 1 << 20, signal: options.signal })) {
      bytes += chunk.length;
      for (const part of scanner.push(chunk)) await writer.write(part);
    }
    const scan = scanner.finish();
    for (const part of scan.tail) await writer.write(part);
    await writer.finish();
    return { scan, bytes };
  } catch (error) {
    options.signal.throwIfAborted();
    throw fileError(error, options.file);
  } finally {
    await writer.close();
  }
}

function fileError(error: unknown, file: string): unknown {
  const where = { file };
  if (error instanceof MalformedCsv) {
    return configError(`${file} is no whole CSV. ${error.sentence}.`, {
      where: { ...error.where, ...where },
      cause: error,
    });
  }
  if (error instanceof UserError || codeOf(error) === undefined) return error;
  return configError(`${file} cannot be read: ${messageOf(error)}.`, { where, cause: error });
}

async function profile(
  engine: Engine,
  scan: ScanResult,
  { path, bytes }: { readonly path: string; readonly bytes: number },
  options: ProfileOptions,
): Promise<FileProfile> {
  const { header, rows, longestRow, finalNewline, invalidUtf8 } = scan;
  const from = readCsv(
    [{ path, longestRow }],
    header.map(() => 'VARCHAR'),
  );
  const measured = await measure(engine, scan, from, options);
  const columns = scan.columns.map(({ source, group }, i) => ({ source, group, ...(measured.get(i) ?? NO_VALUE) }));
  const ids = await countIds(engine, scan, from, options.signal);
  const missing = missingColumns(header);
  const unseen = options.edits === undefined ? [] : unlisted(options.edits, new Set(scan.listed));
  return { rows, bytes, finalNewline, invalidUtf8, missing, unlisted: unseen, ...ids, columns };
}

const NO_VALUE: Measured = {
  type: null,
  filled: 0,
  distinct: 0,
  minimum: null,
  maximum: null,
  examples: [],
  rescued: 0,
};

const MEASURED_AT_ONCE = 500;

/** Measures the columns with a value, by their index, under the types that a first load of the file would give them. */
async function measure(
  engine: Engine,
  scan: ScanResult,
  from: string,
  { timezone, pinned, signal }: ProfileOptions,
): Promise<Map<number, Measured>> {
  const zone = zoneOf(timezone);
  const rules: Rules = { timezone, columnTypes: new Map(), schemaMode: 'evolve', pinned };
  const incoming = incomingColumns([scan]);
  const plan = new Map(
    planColumns(FIRST_COLUMNS, incoming.columns, rules, { isFirst: true }).map((column) => [column.key, column]),
  );
  const read = incoming.files[0].flatMap(({ key, index }) => {
    const column = plan.get(key);
    // Nothing is stored of a column that has only empty cells and `null`.
    if (column === undefined || column.readAs === null) return [];
    return { index, ...cellSql(column, cell(index), zone, { wantsText: true }) };
  });
  const measured = new Map<number, Measured>();
  for (let at = 0; at < read.length; at += MEASURED_AT_ONCE) {
    const some = read.slice(at, at + MEASURED_AT_ONCE);
    // The aggregates have no FILTER: each would copy the arguments of all aggregates.
    const values = some.map(({ index, value = 'NULL' }) => `${cell(index)}, ${value} AS v${index}`);
    const answers = some.map((one) => answerSql(one, one.index, zone));
    const query = `
      SELECT CAST(to_json([${answers.join(', ')}]) AS VARCHAR) AS found
      FROM (SELECT ${values.join(', ')} FROM ${from})`;
    const { found } = await ask(engine, query, signal);
    const all: readonly Measured[] = JSON.parse(String(found));
    for (const [i, one] of all.entries()) measured.set(some[i].index, one);
  }
  return measured;
}

const LONGEST_TEXT = 200;
const MAX_EXAMPLES = 3;

/**
 * SQL of a `Measured`, as a struct of aggregates over the cells `cN` and their values `vN`:
 * `{'type': 'long', 'filled': count(v7) + 0, 'distinct': …, 'minimum': left(min(v7)…, 200), …}`.
 */
function answerSql({ column, rescue }: CellSql, index: number, zone: Zone | undefined): string {
  const [text, typed] = [cell(index), `v${index}`];
  const type = column.type ?? 'string';
  const rescued = rescue === undefined ? '0' : `count(CASE WHEN ${rescue.condition} THEN 1 END)`;
  const present = type === 'string' ? text : `nullif(${text}, 'null')`;
  const extreme = (name: 'min' | 'max') =>
    TYPES[type].range === 'none' ? 'NULL' : `left(${TYPES[type].sqlText(`${name}(${typed})`, zone)}, ${LONGEST_TEXT})`;
  return `{
    'type': ${literal(type)},
    'filled': count(${typed}) + ${rescued},
    'distinct': least(approx_count_distinct(${typed}), count(${typed})),
    'minimum': ${extreme('min')},
    'maximum': ${extreme('max')},
    'examples': coalesce(approx_top_k(left(${present}, ${LONGEST_TEXT}), ${MAX_EXAMPLES}), []),
    'rescued': ${rescued}
  }`;
}

/** Counts repeated and missing ids exactly; rows are read only if the scan saw either. */
async function countIds(
  engine: Engine,
  { header, rows, hasDuplicateOrMissingIds }: ScanResult,
  from: string,
  signal: AbortSignal,
): Promise<Pick<FileProfile, 'repeatedIds' | 'missingIds'>> {
  const index = header.indexOf(DETAIL_LOG_ID);
  if (index < 0) return { repeatedIds: 0, missingIds: rows };
  if (!hasDuplicateOrMissingIds) return { repeatedIds: 0, missingIds: 0 };
  const id = cell(index);
  const sql = `SELECT count(${id}) AS filled, count(DISTINCT ${id}) AS ids FROM ${from}`;
  const { filled, ids } = await ask(engine, sql, signal);
  return { repeatedIds: Number(filled) - Number(ids), missingIds: rows - Number(filled) };
}

const ask = (engine: Engine, sql: string, signal: AbortSignal) => engine.transaction(() => engine.row(sql), signal);
