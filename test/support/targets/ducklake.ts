import { join } from 'node:path';
import { literal } from '../../../src/cells/types/sql.ts';
import { identifier } from '../../../src/engine/session/quote.ts';
import type { Window } from '../../../src/extract/window.ts';
import { DUCKLAKE } from '../../../src/targets/ducklake/log.ts';
import type { FilesSinkOptions } from '../../../src/targets/files/load.ts';
import { DEFAULT_RETENTION_MS } from '../../../src/targets/files/stored-files.ts';
import type { Commit, Sink } from '../../../src/targets/sink.ts';
import { placeOf } from './files.ts';
import { FolderFixture } from './place.ts';
import { inDatabase, query } from './query.ts';

const { open: openLakeSink } = placeOf(DUCKLAKE);
export const {
  verify: verifyLake,
  compact: compactLake,
  tryPurge: tryPurgeLake,
  purge: purgeLake,
  people: peopleInLake,
  report: reportLake,
} = placeOf(DUCKLAKE);

/** DuckDB's names of the catalog's types; it has the others itself. */
const DUCKDB: Readonly<Record<string, string>> = { int64: 'BIGINT', float64: 'DOUBLE' };
const duckDbName = (type: unknown): string => DUCKDB[String(type)] ?? String(type);

/** A catalog of DuckLake and the spool files of the windows made here. */
export class DuckLakeFixture extends FolderFixture {
  readonly root = join(this.dir, 'lake');
  readonly place = join(this.root, 'catalog.ducklake');
  readonly data = `${this.place}.files`;

  get lakeOptions() {
    const { clock, logger, memoryLimit } = this.targetOptions;
    const spoolDir = join(this.dir, 'spool');
    return { place: this.place, env: () => undefined, spoolDir, lockWaitMs: 0, clock, logger, memoryLimit };
  }

  openLake(options: Partial<FilesSinkOptions> = {}): Promise<Sink> {
    const more = { tables: ['events' as const], retentionMs: DEFAULT_RETENTION_MS };
    return openLakeSink({ ...this.targetOptions, ...this.lakeOptions, ...more, ...options });
  }

  /** Opens, commits these windows, closes. */
  async store(windows: readonly Window[], options: Partial<FilesSinkOptions> = {}): Promise<Commit[]> {
    return this.commitAll(await this.openLake(options), windows);
  }

  /** The data files that are stored, from the folder of the schema. */
  dataFiles(): string[] {
    const start = 'catalog.ducklake.files/main/';
    return this.files().flatMap((path) => (path.endsWith('.parquet') ? [path.slice(start.length)] : []));
  }

  /** Rows of the catalog's own tables. */
  catalog(sql: string): Promise<Record<string, unknown>[]> {
    return query(this.place, sql);
  }

  /** Changes the catalog, as another program might. */
  async change(...statements: string[]): Promise<void> {
    await inDatabase(this.place, async (connection) => {
      for (const sql of statements) await connection.run(sql);
    });
  }

  /** A query over the tables as a reader of the format sees them at a snapshot, by nothing of the program. */
  async read(sql: string, snapshot?: number): Promise<Record<string, unknown>[]> {
    const at = snapshot ?? Number((await this.catalog('SELECT max(snapshot_id) AS id FROM ducklake_snapshot'))[0]?.id);
    const live = `begin_snapshot <= ${at} AND (end_snapshot IS NULL OR end_snapshot > ${at})`;
    const views: string[] = [];
    for (const table of await this.catalog(
      `SELECT table_id AS id, table_name AS name FROM ducklake_table WHERE ${live}`,
    )) {
      const columns = await this.catalog(
        `SELECT column_id AS id, column_name AS name, column_type AS type, parent_column AS parent FROM ducklake_column
        WHERE table_id = ${table.id} AND ${live} ORDER BY column_order`,
      );
      if (columns.length === 0) continue;
      const files = await this.catalog(`SELECT path FROM ducklake_data_file WHERE table_id = ${table.id} AND ${live}`);
      const types = columns
        .filter(({ parent }) => parent === null)
        .map(({ id, name, type }) => {
          const element = columns.find(({ parent }) => parent === id);
          return `CAST(NULL AS ${element ? `${duckDbName(element.type)}[]` : duckDbName(type)}) AS ${identifier(String(name))}`;
        });
      const parts = files.map(({ path }) => {
        const file = join(this.data, 'main', String(table.name), String(path));
        return `SELECT * FROM read_parquet(${literal(file)}, hive_partitioning = false)`;
      });
      views.push(
        `${table.name} AS (${[`SELECT ${types.join(', ')} WHERE false`, ...parts].join(' UNION ALL BY NAME ')})`,
      );
    }
    return query(':memory:', `WITH ${views.join(', ')} ${sql}`);
  }
}
