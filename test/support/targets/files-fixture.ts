import { join } from 'node:path';
import type { Window } from '../../../src/extract/window.ts';
import { DELTA } from '../../../src/sinks/delta/log.ts';
import { DUCKLAKE } from '../../../src/sinks/ducklake/log.ts';
import type { FilesSinkOptions } from '../../../src/sinks/files/load.ts';
import type { Snapshot } from '../../../src/sinks/files/log.ts';
import type { FilesFormat } from '../../../src/sinks/files/open.ts';
import { PARQUET } from '../../../src/sinks/parquet/log.ts';
import type { Commit } from '../../../src/sinks/sink.ts';
import { TABLES } from '../../../src/table/columns.ts';
import { DeltaFixture } from './delta.ts';
import { DuckLakeFixture } from './ducklake.ts';
import { placeOf } from './files.ts';
import { ParquetFixture } from './parquet.ts';

/** The targets that keep a table of files: what is promised of one is promised of all. */
export const FILE_TARGETS = ['parquet', 'delta', 'ducklake'] as const;

const MADE = {
  parquet: () => ({ fixture: new ParquetFixture(), format: PARQUET }),
  delta: () => ({ fixture: new DeltaFixture(), format: DELTA }),
  ducklake: () => ({ fixture: new DuckLakeFixture(), format: DUCKLAKE }),
} as const satisfies Record<(typeof FILE_TARGETS)[number], () => unknown>;

/** A place of one of these targets, its log counted. */
export class FilesFixture {
  readonly fixture: ParquetFixture | DeltaFixture | DuckLakeFixture;
  readonly format: FilesFormat;
  /** Changes that were committed. */
  commits = 0;

  constructor(target: (typeof FILE_TARGETS)[number]) {
    const { fixture, format } = MADE[target]();
    this.fixture = fixture;
    this.format = this.#counting(format);
  }

  get options(): FilesSinkOptions {
    const { targetOptions, root, dir } = this.fixture;
    const at = this.fixture instanceof DuckLakeFixture ? this.fixture.place : root;
    const place = { place: at, spoolDir: join(dir, 'spool'), env: () => undefined, retentionMs: 86_400_000 };
    return { ...targetOptions, ...place, tables: TABLES };
  }

  get place() {
    return placeOf(this.format);
  }

  /** Opens, commits each of these batches, closes. */
  async store(batches: readonly (readonly Window[])[], options: Partial<FilesSinkOptions> = {}): Promise<Commit[]> {
    const sink = await this.place.open({ ...this.options, ...options });
    try {
      const done: Commit[] = [];
      for (const batch of batches) {
        for (let rest = batch; rest.length > 0; ) {
          const commit = await sink.commit(rest, this.fixture.signal);
          done.push(commit);
          rest = rest.slice(commit.windows);
        }
      }
      return done;
    } finally {
      await sink.close();
    }
  }

  /** What the log says now; undefined where nothing was committed. */
  async snapshot(): Promise<Snapshot | undefined> {
    const { log, close } = await this.format.open(this.options, 'read');
    await close();
    return log.snapshot;
  }

  read(sql: string): Promise<Record<string, unknown>[]> {
    return this.fixture.read(sql);
  }

  verify() {
    return this.place.verify(this.options);
  }

  close(): void {
    this.fixture.close();
  }

  #counting(format: FilesFormat): FilesFormat {
    return {
      ...format,
      open: async (options, mode) => {
        const place = await format.open(options, mode);
        const commit = place.log.commit.bind(place.log);
        place.log.commit = async (change) => {
          await commit(change);
          this.commits++;
        };
        return place;
      },
    };
  }
}
