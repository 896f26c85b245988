import { join } from 'node:path';
import type { Window } from '../../../src/extract/window.ts';
import { type DuckDbSinkOptions, openDuckDbSink } from '../../../src/targets/duckdb/sink.ts';
import type { Commit, Sink } from '../../../src/targets/sink.ts';
import { filesBelow, PlaceFixture } from './place.ts';
import { query } from './query.ts';

/** A database file and the spool files of the windows made here. */
export class DuckDbFixture extends PlaceFixture {
  readonly file = join(this.dir, 'events.duckdb');
  readonly place = this.file;

  open(options: Partial<DuckDbSinkOptions> = {}): Promise<Sink> {
    return openDuckDbSink({ file: this.file, ...this.targetOptions, ...options });
  }

  /** Opens, commits these windows, closes. */
  async load(windows: readonly Window[], options: Partial<DuckDbSinkOptions> = {}): Promise<Commit[]> {
    return this.commitAll(await this.open(options), windows);
  }

  /** A query over `events`, `event_items` or `event_logs` as a reader of the place sees them. */
  read(sql: string): Promise<Record<string, unknown>[]> {
    return query(this.file, sql);
  }

  /** Every file of the place, by its whole path: here the database and what lies beside it under its name. */
  stored(): string[] {
    return filesBelow(this.dir).filter((path) => path.startsWith(this.file));
  }

  query(sql: string, file = this.file): Promise<Record<string, unknown>[]> {
    return query(file, sql);
  }
}
