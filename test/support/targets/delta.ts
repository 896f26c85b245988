import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Day } from '../../../src/base/days.ts';
import type { Window } from '../../../src/extract/window.ts';
import { type DeltaSinkOptions, openDeltaSink } from '../../../src/sinks/delta/sink.ts';
import type { Commit, Sink } from '../../../src/sinks/sink.ts';
import { identifier } from '../../../src/sinks/sql/engine/quote.ts';
import { literal } from '../../../src/types/sql.ts';
import { type Cells, csvOf, DuckBench, on } from './duckdb.ts';
import { query } from './query.ts';

type Fields = Readonly<Record<string, unknown>>;
type Entry = Readonly<Record<string, Fields | undefined>>;

const DUCKDB: Readonly<Record<string, string>> = {
  string: 'VARCHAR',
  long: 'BIGINT',
  double: 'DOUBLE',
  boolean: 'BOOLEAN',
  date: 'DATE',
  timestamp: 'TIMESTAMPTZ',
  timestamp_ntz: 'TIMESTAMP',
};

/** A folder of Delta tables and the spool files of the windows made here. */
export class DeltaBench extends DuckBench {
  readonly root = join(this.dir, 'lake');

  get lakeOptions() {
    const { clock, logger, memoryLimit } = this.targetOptions;
    return { url: this.root, env: () => undefined, spoolDir: join(this.dir, 'spool'), clock, logger, memoryLimit };
  }

  openLake(options: Partial<DeltaSinkOptions> = {}): Promise<Sink> {
    const more = { tables: ['events' as const], retentionMs: 86_400_000 };
    return openDeltaSink({ ...this.targetOptions, ...this.lakeOptions, ...more, ...options });
  }

  /** A window of one day with these rows, at ten o'clock of it where a row says nothing else. */
  windowOf(day: Day, ...rows: Cells[]): Window {
    return this.window(day, csvOf(rows.map((row) => ({ ...on(day), ...row }))));
  }

  /** Opens, commits these windows, closes. */
  async store(windows: readonly Window[], options: Partial<DeltaSinkOptions> = {}): Promise<Commit[]> {
    return this.commitAll(await this.openLake(options), windows);
  }

  /** Every file below the folder, `/` between names, sorted. */
  files(folder = ''): string[] {
    const root = join(this.root, folder);
    if (!existsSync(root)) return [];
    return readdirSync(root, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
      .sort();
  }

  /** The lines of one version of a table's log, as they stand there. */
  entry(table: string, version: number): Entry[] {
    const name = `${String(version).padStart(20, '0')}.json`;
    const text = readFileSync(join(this.root, table, '_delta_log', name), 'utf8');
    return text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Entry);
  }

  /** Adds a version with this one line, as somebody else might. */
  append(table: string, version: number, line: unknown): void {
    const name = `${String(version).padStart(20, '0')}.json`;
    writeFileSync(join(this.root, table, '_delta_log', name), `${JSON.stringify(line)}\n`);
  }

  /** What the lines of one version say of one kind of action. */
  actions(table: string, version: number, kind: string): Fields[] {
    return this.entry(table, version).flatMap((line): Fields[] => (line[kind] === undefined ? [] : [line[kind]]));
  }

  /** How many versions a table has, whose log begins with version 0. */
  versions(table = 'events'): number {
    return this.files(`${table}/_delta_log`).filter((name) => /^\d{20}\.json$/.test(name)).length;
  }

  /** A table at a version, by the protocol and by nothing of the program: its schema and its files. */
  replay(table: string, version = this.versions(table) - 1) {
    const files = new Map<string, Fields>();
    let schema: { name: string; type: string | { elementType: string } }[] = [];
    for (let v = 0; v <= version; v++) {
      for (const { metaData, add, remove } of this.entry(table, v)) {
        if (metaData !== undefined) schema = JSON.parse(String(metaData.schemaString)).fields;
        if (add !== undefined) files.set(decodeURIComponent(String(add.path)), add);
        if (remove !== undefined) files.delete(decodeURIComponent(String(remove.path)));
      }
    }
    return { schema, files };
  }

  /** A query over `events`, `event_items` or `event_logs` as a reader of the protocol sees them. */
  read(sql: string, version?: number): Promise<Record<string, unknown>[]> {
    const withs = ['events', 'event_items', 'event_logs'].filter((name) => existsSync(join(this.root, name)));
    const views = withs.map((name) => `${name} AS (${this.#select(name, name === 'events' ? version : undefined)})`);
    return query(':memory:', `WITH ${views.join(', ')} ${sql}`);
  }

  #select(table: string, version?: number): string {
    const { schema, files } = this.replay(table, version);
    const types = schema.map(({ name, type }) => {
      const duckdb = typeof type === 'string' ? DUCKDB[type] : `${DUCKDB[type.elementType]}[]`;
      return { name, duckdb };
    });
    const empty = types.map(({ name, duckdb }) => `CAST(NULL AS ${duckdb}) AS ${identifier(name)}`).join(', ');
    const parts = [...files].map(([path, add]) => {
      const date = (add.partitionValues as Record<string, string | null>).event_date;
      const from = `read_parquet(${literal(join(this.root, table, path))}, hive_partitioning = false)`;
      return `SELECT *, CAST(${date === null ? 'NULL' : literal(date)} AS DATE) AS event_date FROM ${from}`;
    });
    return [`SELECT ${empty} WHERE false`, ...parts].join(' UNION ALL BY NAME ');
  }
}
