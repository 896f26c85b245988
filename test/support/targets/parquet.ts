import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { silentLogger } from '../../../src/base/log.ts';
import { literal } from '../../../src/cells/types/sql.ts';
import type { Window } from '../../../src/extract/window.ts';
import type { FilesSinkOptions } from '../../../src/targets/files/load.ts';
import type { Manifest } from '../../../src/targets/parquet/manifest.ts';
import type { Commit, Sink } from '../../../src/targets/sink.ts';
import { openParquetSink } from './files.ts';
import { FolderFixture } from './place.ts';
import { query } from './query.ts';

/** A folder of datasets and the spool files of the windows made here. */
export class ParquetFixture extends FolderFixture {
  readonly root = join(this.dir, 'lake');
  readonly place: string = this.root;

  /** The options of verify, compact, purge and readers of the folder. */
  get folderOptions() {
    const { lockWaitMs, clock } = this.targetOptions;
    return { place: this.root, env: () => undefined, spoolDir: this.dir, lockWaitMs, clock, logger: silentLogger };
  }

  openFolder(options: Partial<FilesSinkOptions> = {}): Promise<Sink> {
    return openParquetSink({ ...this.folderOptions, tables: ['events'], ...this.targetOptions, ...options });
  }

  /** Opens, commits these windows, closes. */
  async store(windows: readonly Window[], options: Partial<FilesSinkOptions> = {}): Promise<Commit[]> {
    return this.commitAll(await this.openFolder(options), windows);
  }

  get manifest(): Manifest {
    return JSON.parse(readFileSync(join(this.root, '_dfinery/manifest.json'), 'utf8'));
  }

  /** A query over `events`, `event_items` or `event_logs` as a reader that globs sees them. */
  read(sql: string): Promise<Record<string, unknown>[]> {
    const withs = ['events', 'event_items', 'event_logs'].filter((name) => existsSync(join(this.root, name)));
    const views = withs.map(
      (name) => `${name} AS (SELECT * FROM read_parquet(${literal(`${this.root}/${name}/*/*.parquet`)}))`,
    );
    return query(':memory:', `WITH ${views.join(', ')} ${sql}`);
  }
}
