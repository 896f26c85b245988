import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { literal } from '../../../src/cells/types/sql.ts';
import { openEngine } from '../../../src/engine/session/open.ts';
import { identifier } from '../../../src/engine/session/quote.ts';
import type { Window } from '../../../src/extract/window.ts';
import { DiskStorage } from '../../../src/storage/disk.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import type { TableName } from '../../../src/table/columns.ts';
import { type LogFolder, readSnapshot, writeCheckpoint } from '../../../src/targets/delta/protocol/snapshot.ts';
import { DeltaTable } from '../../../src/targets/delta/table.ts';
import type { FilesSinkOptions } from '../../../src/targets/files/load.ts';
import { DEFAULT_RETENTION_MS } from '../../../src/targets/files/stored-files.ts';
import type { Commit, Sink } from '../../../src/targets/sink.ts';
import { openDeltaSink } from './files.ts';
import { FolderFixture } from './place.ts';
import { query } from './query.ts';

type Fields = Readonly<Record<string, unknown>>;
type Entry = Readonly<Record<string, Fields | undefined>>;

/** DuckDB's names of the log's types; it has the others itself. */
const DUCKDB: Readonly<Record<string, string>> = {
  long: 'BIGINT',
  timestamp: 'TIMESTAMPTZ',
  timestamp_ntz: 'TIMESTAMP',
};
const duckDbName = (type: string): string => DUCKDB[type] ?? type;

/** A folder of Delta tables and the spool files of the windows made here. */
export class DeltaFixture extends FolderFixture {
  readonly root = join(this.dir, 'lake');
  readonly place = this.root;

  get lakeOptions() {
    const { clock, logger, memoryLimit } = this.targetOptions;
    return {
      place: this.root,
      env: () => undefined,
      spoolDir: join(this.dir, 'spool'),
      lockWaitMs: 0,
      clock,
      logger,
      memoryLimit,
    };
  }

  openLake(options: Partial<FilesSinkOptions> = {}): Promise<Sink> {
    const more = { tables: ['events' as const], retentionMs: DEFAULT_RETENTION_MS };
    return openDeltaSink({ ...this.targetOptions, ...this.lakeOptions, ...more, ...options });
  }

  /** Opens, commits these windows, closes. */
  async store(windows: readonly Window[], options: Partial<FilesSinkOptions> = {}): Promise<Commit[]> {
    return this.commitAll(await this.openLake(options), windows);
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

  /** Adds a version with these lines, as somebody else might. */
  append(table: string, version: number, ...lines: readonly unknown[]): void {
    const name = `${String(version).padStart(20, '0')}.json`;
    writeFileSync(
      join(this.root, table, '_delta_log', name),
      lines.map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
  }

  /** A table as a run that opens it finds it. */
  async withTable<T>(
    look: (table: DeltaTable) => T | Promise<T>,
    storage: Storage = new DiskStorage(this.root),
    name: TableName = 'events',
  ): Promise<T> {
    return this.#atLog(storage, name, async (place) => look(await DeltaTable.open(place, this.lakeOptions.logger)));
  }

  /** Writes a checkpoint of a table's latest version; what left the table before `since` (ms) is left out. */
  async checkpoint(since = 0, name: TableName = 'events'): Promise<void> {
    await this.#atLog(new DiskStorage(this.root), name, async (place) => {
      const snapshot = await readSnapshot(place);
      await writeCheckpoint(place, snapshot.version, snapshot.actions(since));
    });
  }

  async #atLog<T>(storage: Storage, folder: TableName, work: (place: LogFolder) => Promise<T>): Promise<T> {
    const own = mkdtempSync(join(this.dir, 'log-'));
    const { clock } = this.lakeOptions;
    const engine = await openEngine({ file: join(own, 'engine'), lockWaitMs: 0, clock });
    try {
      return await work({ storage, folder, engine, work: own });
    } finally {
      await engine.close();
      rmSync(own, { recursive: true });
    }
  }

  /** The actions of one kind in the entry of one version. */
  actions(table: string, version: number, kind: string): Fields[] {
    return this.entry(table, version).flatMap((line): Fields[] => (line[kind] === undefined ? [] : [line[kind]]));
  }

  /** How many versions a table has had. */
  versions(table = 'events'): number {
    const last = this.files(`${table}/_delta_log`).findLast((name) => /^\d{20}\.json$/.test(name));
    return last === undefined ? 0 : Number.parseInt(last, 10) + 1;
  }

  /**
   * A table at a version, by the protocol and by nothing of the program: its schema and its files. Of a log that begins with
   * version 0; `current` takes any.
   */
  replay(table: string, version = this.versions(table) - 1) {
    return this.#replayed(table, [], 0, version);
  }

  /** The latest version of a log that may begin with a checkpoint. */
  async current(table: string) {
    const log = this.files(`${table}/_delta_log`);
    const checkpoint = log.findLast((name) => name.endsWith('.checkpoint.parquet'));
    if (checkpoint === undefined) return this.replay(table);
    const file = literal(join(this.root, table, '_delta_log', checkpoint));
    const rows = await query(
      ':memory:',
      `SELECT metaData.schemaString AS schema, to_json(add)::VARCHAR AS file FROM read_parquet(${file})`,
    );
    const actions = rows.map(
      ({ schema, file: add }): Entry => ({
        metaData: schema === null ? undefined : { schemaString: schema },
        add: add === null ? undefined : JSON.parse(String(add)),
      }),
    );
    return this.#replayed(table, actions, Number.parseInt(checkpoint, 10) + 1, this.versions(table) - 1);
  }

  #replayed(table: string, actions: readonly Entry[], from: number, to: number) {
    const files = new Map<string, Fields>();
    let schema: { name: string; type: string | { elementType: string } }[] = [];
    const entries = Array.from({ length: to - from + 1 }, (_, i) => this.entry(table, from + i));
    for (const { metaData, add, remove } of [...actions, ...entries.flat()]) {
      if (metaData !== undefined) schema = JSON.parse(String(metaData.schemaString)).fields;
      if (add !== undefined) files.set(decodeURIComponent(String(add.path)), add);
      if (remove !== undefined) files.delete(decodeURIComponent(String(remove.path)));
    }
    return { schema, files };
  }

  /** A query over `events`, `event_items` or `event_logs` as a reader of the protocol sees them. */
  async read(sql: string, version?: number): Promise<Record<string, unknown>[]> {
    const withs = ['events', 'event_items', 'event_logs'].filter((name) => existsSync(join(this.root, name)));
    const views: string[] = [];
    for (const name of withs) {
      const isCurrent = version === undefined || name !== 'events';
      const table = isCurrent ? await this.current(name) : this.replay(name, version);
      views.push(`${name} AS (${this.#select(name, table)})`);
    }
    return query(':memory:', `WITH ${views.join(', ')} ${sql}`);
  }

  #select(table: string, { schema, files }: ReturnType<DeltaFixture['replay']>): string {
    const types = schema.map(({ name, type }) => {
      const duckdb = typeof type === 'string' ? duckDbName(type) : `${duckDbName(type.elementType)}[]`;
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
