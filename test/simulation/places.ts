import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { literal } from '../../src/cells/types/sql.ts';
import type { ColumnType } from '../../src/cells/types/type.ts';
import { identifier } from '../../src/engine/session/quote.ts';
import type { StoredColumn } from '../../src/table/columns.ts';
import { delta } from '../../src/targets/delta/target.ts';
import { duckdb } from '../../src/targets/duckdb/target.ts';
import { parquet as parquetTarget } from '../../src/targets/parquet/target.ts';
import type { StatefulTarget } from '../../src/targets/target.ts';
import { type Stored, storedOf } from '../support/targets/stored-rows.ts';

/*
 * What a place holds, read by nothing of the program: as any other reader of the format would.
 */

/** Rows of `events` with their keys, and the first day that is not known to be complete. */
export interface Held extends Stored {
  readonly keys: readonly string[];
  readonly cursor: string | undefined;
  /** Whether `to_date` is included in an export of a single day, and of several, as far as the state says so. */
  readonly inclusive: boolean | undefined;
  readonly rangesInclusive: boolean | undefined;
  /** Ids of the last receipt: what the state says, and what is there. */
  readonly lastReceipts: readonly [string | undefined, string | undefined];
  /** The rows of a table beside `events`, if it is kept as files: the `df_event_log_id` and the person of each. */
  readonly logs?: readonly OtherRow[];
  readonly items?: readonly OtherRow[];
  /** Files that the latest version has and that are not there, and those that an older one has. */
  readonly lost?: readonly string[];
  readonly lostOlder?: readonly string[];
}

interface OtherRow {
  readonly log: string;
  readonly person: string;
}

export const NOTHING: Held = {
  rows: [],
  types: new Map(),
  rescued: 0,
  keys: [],
  cursor: undefined,
  inclusive: undefined,
  rangesInclusive: undefined,
  lastReceipts: [undefined, undefined],
};

/** The rows of `event_logs` and `event_items` in a folder, where they are kept. */
async function othersIn(filesOf: (table: string) => readonly string[]): Promise<Pick<Held, 'logs' | 'items'>> {
  const [logs, items] = [filesOf('event_logs'), filesOf('event_items')];
  return {
    ...(logs.length > 0 && { logs: await otherRows(logs) }),
    ...(items.length > 0 && { items: await otherRows(items) }),
  };
}

async function otherRows(files: readonly string[]): Promise<OtherRow[]> {
  const rows = await ask(`SELECT df_event_log_id AS log, df_unified_id AS person FROM ${parquet(files)}`);
  return rows.map(({ log, person }) => ({ log: String(log), person: String(person) }));
}

export const parquet = (files: readonly string[]): string =>
  `read_parquet([${files.map((path) => literal(path)).join(', ')}], union_by_name = true, hive_partitioning = false)`;

/** A target of the simulations: each is one entry here. */
export interface SimulatedTarget {
  readonly descriptor: StatefulTarget;
  /** The name of its file or folder. Data beside it lie in a folder whose name begins with that. */
  readonly place: string;
  /** True if a change of all tables is one step of its own: a killed one leaves nothing that the next writer has to finish. */
  readonly isAtomic: boolean;
  readonly held: (place: string) => Promise<Held>;
}

export const TARGETS = {
  duckdb: { descriptor: duckdb, place: 'events.duckdb', isAtomic: true, held: inDuckDb },
  parquet: { descriptor: parquetTarget, place: 'lake', isAtomic: false, held: inParquet },
  delta: { descriptor: delta, place: 'delta', isAtomic: false, held: inDelta },
} as const satisfies Readonly<Record<string, SimulatedTarget>>;

export type StoredTarget = keyof typeof TARGETS;
export const TARGET_NAMES = Object.keys(TARGETS) as StoredTarget[];

/** One engine for all simulations: making one takes longer than what it is asked. */
let engine: Promise<DuckDBConnection> | undefined;

export async function ask(sql: string): Promise<Record<string, unknown>[]> {
  engine ??= DuckDBInstance.create(':memory:', { threads: '1', enable_external_file_cache: 'false' }).then((instance) =>
    instance.connect(),
  );
  return (await (await engine).runAndReadAll(sql)).getRowObjectsJson();
}

/** Runs work on a DuckDB file that this program has loaded; undefined if there is none. */
export async function inDatabase<T>(file: string, work: () => Promise<T>): Promise<T | undefined> {
  if (!existsSync(file)) return undefined;
  await ask(`ATTACH ${literal(file)} AS held (READ_ONLY)`);
  try {
    await ask('USE held');
    const [found] = await ask("SELECT count(*) AS n FROM duckdb_tables() WHERE table_name = '_dfinery_state'");
    return Number(found.n) === 0 ? undefined : await work();
  } finally {
    await ask('USE memory');
    await ask('DETACH held');
  }
}

async function inDuckDb(file: string): Promise<Held> {
  const found = await inDatabase(file, async () => {
    const [state] = await ask('SELECT CAST(state AS VARCHAR) AS state FROM _dfinery_state');
    const columns = await ask(
      'SELECT source_name AS source, table_name AS name, type FROM _dfinery_columns WHERE type IS NOT NULL ORDER BY position',
    );
    const [last] = await ask('SELECT id FROM _dfinery_windows ORDER BY number DESC LIMIT 1');
    const claims = claimsOf(typeof state?.state === 'string' ? JSON.parse(state.state) : undefined, last?.id);
    const typed = columns.map(
      ({ source, name, type }): Typed => ({ source: `${source}`, name: `${name}`, type: type as ColumnType }),
    );
    return await rowsFrom('events', typed, claims);
  });
  return found ?? NOTHING;
}

type Typed = Pick<StoredColumn, 'source' | 'name'> & { readonly type: ColumnType };

interface StoredState {
  readonly from_date?: string;
  readonly to_date_inclusive?: boolean;
  readonly ranges_inclusive?: boolean;
  readonly last_receipt?: string;
}

type Claims = Pick<Held, 'cursor' | 'inclusive' | 'rangesInclusive' | 'lastReceipts'>;

/** The claims of a place: its state, and the id of its last receipt. */
function claimsOf(state: unknown, receipt: unknown): Claims {
  const { from_date, to_date_inclusive, ranges_inclusive, last_receipt } = (state ?? {}) as StoredState;
  return {
    cursor: from_date,
    inclusive: to_date_inclusive,
    rangesInclusive: ranges_inclusive,
    lastReceipts: [last_receipt, typeof receipt === 'string' ? receipt : undefined],
  };
}

interface Manifest {
  readonly columns: readonly StoredColumn[];
  readonly cursor: unknown;
  readonly receipts: readonly { readonly id: string }[];
}

async function inParquet(dir: string): Promise<Held> {
  const path = join(dir, '_dfinery/manifest.json');
  if (!existsSync(path)) return NOTHING;
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as Manifest;
  const filesOf = (table: string) => {
    const folder = join(dir, table);
    const names = existsSync(folder) ? readdirSync(folder, { recursive: true }).map(String) : [];
    return names.filter((name) => name.endsWith('.parquet')).map((name) => join(folder, name));
  };
  const claims = claimsOf(manifest.cursor, manifest.receipts.at(-1)?.id);
  return { ...(await heldOf(filesOf('events'), manifest.columns, claims)), ...(await othersIn(filesOf)) };
}

interface Entry {
  readonly add?: { readonly path: string };
  readonly remove?: { readonly path: string };
  readonly domainMetadata?: { readonly domain: string; readonly configuration: string };
}

async function inDelta(dir: string): Promise<Held> {
  if (!existsSync(join(dir, 'events/_delta_log'))) return NOTHING;
  const { files, domains } = await inDeltaLog(dir, 'events');
  const value = (domain: string): unknown => JSON.parse(domains.get(domain) ?? 'null');
  const columns = (value('dfinery.columns') ?? []) as StoredColumn[];
  const claims = claimsOf(value('dfinery.cursor'), lastWindow(domains, 'dfinery.window.'));
  const others = new Map<string, readonly string[]>();
  for (const table of ['event_logs', 'event_items']) others.set(table, (await inDeltaLog(dir, table)).files);
  return { ...(await heldOf(files, columns, claims)), ...(await othersIn((table) => others.get(table) ?? [])) };
}

/** The files of a table, and what is stored beside them, by a checkpoint of its log and the entries after it. */
async function inDeltaLog(dir: string, table: string) {
  const log = join(dir, table, '_delta_log');
  const files = new Set<string>();
  const domains = new Map<string, string>();
  const names = existsSync(log) ? readdirSync(log).sort() : [];
  const checkpoint = names.findLast((name) => name.endsWith('.checkpoint.parquet'));
  const first = checkpoint === undefined ? 0 : Number.parseInt(checkpoint, 10) + 1;
  const entries = checkpoint === undefined ? [] : await entriesOf(join(log, checkpoint));
  for (const name of names.filter((one) => /^\d{20}\.json$/.test(one) && Number.parseInt(one, 10) >= first)) {
    const lines = readFileSync(join(log, name), 'utf8').trimEnd().split('\n');
    entries.push(...lines.map((line) => JSON.parse(line) as Entry));
  }
  for (const { add, remove, domainMetadata } of entries) {
    if (add !== undefined) files.add(decodeURIComponent(add.path));
    if (remove !== undefined) files.delete(decodeURIComponent(remove.path));
    if (domainMetadata !== undefined) domains.set(domainMetadata.domain, domainMetadata.configuration);
  }
  return { files: [...files].map((name) => join(dir, table, name)), domains };
}

async function entriesOf(checkpoint: string): Promise<Entry[]> {
  const rows = await ask(
    `SELECT add.path AS path, domainMetadata.domain AS domain, domainMetadata.configuration AS configuration
    FROM read_parquet(${literal(checkpoint)}) WHERE add IS NOT NULL OR domainMetadata IS NOT NULL`,
  );
  return rows.map(({ path, domain, configuration }) =>
    path === null
      ? { domainMetadata: { domain: String(domain), configuration: String(configuration) } }
      : { add: { path: String(path) } },
  );
}

/** The id of the last receipt, of which each is an entry whose name begins so. */
function lastWindow(entries: ReadonlyMap<string, string>, prefix: string): unknown {
  const windows = [...entries].filter(([name]) => name.startsWith(prefix));
  const last = windows.sort(([a], [b]) => numberOf(a) - numberOf(b)).at(-1);
  return last === undefined ? undefined : (JSON.parse(last[1]) as { id?: unknown }).id;
}

const numberOf = (name: string): number => Number(name.split('.').at(-1));

async function heldOf(files: readonly string[], columns: readonly StoredColumn[], claims: Claims): Promise<Held> {
  if (files.length === 0) return { ...NOTHING, ...claims };
  const from = parquet(files);
  const there = new Set((await ask(`DESCRIBE SELECT * FROM ${from}`)).map((row) => String(row.column_name)));
  const typed = columns.filter(
    (column): column is StoredColumn & Typed => column.type !== null && there.has(column.name),
  );
  return rowsFrom(from, typed, claims);
}

async function rowsFrom(from: string, columns: readonly Typed[], claims: Claims): Promise<Held> {
  const fields = columns.map(({ name, type }, i) => {
    const column = identifier(name);
    return `${type === 'datetime' ? `epoch_ms(${column})` : column} AS c${i}`;
  });
  const rows = await ask(
    `SELECT ${['_key', 'CAST(_rescued AS VARCHAR) AS rescued', ...fields].join(', ')} FROM ${from}`,
  );
  return { ...storedOf(rows, columns), keys: rows.map((row) => String(row._key)), ...claims };
}
