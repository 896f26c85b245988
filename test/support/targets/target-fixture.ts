import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SharedIds } from '../../../src/engine/rows/superseded.ts';
import type { Window } from '../../../src/extract/window.ts';
import { TABLES } from '../../../src/table/columns.ts';
import { priorLoadsOf } from '../../../src/table/state.ts';
import { DELTA } from '../../../src/targets/delta/log.ts';
import { duckdb } from '../../../src/targets/duckdb/target.ts';
import type { FilesFormat } from '../../../src/targets/files/files-format.ts';
import { filesTarget } from '../../../src/targets/files/files-target.ts';
import type { FilesSinkOptions } from '../../../src/targets/files/load.ts';
import { DEFAULT_RETENTION_MS } from '../../../src/targets/files/stored-files.ts';
import type { Snapshot } from '../../../src/targets/files/table-log.ts';
import { PARQUET } from '../../../src/targets/parquet/log.ts';
import type { PeopleQuery } from '../../../src/targets/people.ts';
import type { Commit, Sink } from '../../../src/targets/sink.ts';
import type { StatefulTarget } from '../../../src/targets/target.ts';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { DeltaFixture } from './delta.ts';
import { DuckDbFixture } from './duckdb.ts';
import { EXAMPLE, ExampleFixture } from './example-log.ts';
import { ParquetFixture } from './parquet.ts';
import type { PlaceFixture } from './place.ts';

/** The format of each target that keeps a table of files, and a fixture with a place of it. */
const FORMATS = {
  parquet: { format: PARQUET, newFixture: () => new ParquetFixture() },
  delta: { format: DELTA, newFixture: () => new DeltaFixture() },
} as const satisfies Record<string, FormatOfTests>;

interface FormatOfTests {
  readonly format: FilesFormat;
  readonly newFixture: () => PlaceFixture;
}

/** The formats, with that of the example of docs/targets.md, which no command knows. */
const LOGS = { ...FORMATS, example: { format: EXAMPLE, newFixture: () => new ExampleFixture() } } as const;

export type FileTargetName = keyof typeof FORMATS;
export type TargetName = 'duckdb' | FileTargetName;
/** The targets that keep a table of files, and with them DuckDB: what is promised of one is promised of all. */
export const FILE_TARGETS = Object.keys(FORMATS) as FileTargetName[];
/** The logs whose commit decides between two writers. */
export const LOGS_WITHOUT_LOCK = (Object.keys(LOGS) as (keyof typeof LOGS)[]).filter((name) => name !== 'parquet');
export const TARGETS: readonly TargetName[] = ['duckdb', ...FILE_TARGETS];
/** The targets of which any path of a disk can be a place: all but servers. */
export const DISK_TARGETS: readonly TargetName[] = ['duckdb', ...FILE_TARGETS];

/** A target by the name that commands know it by. */
export function statefulTarget(name: string): StatefulTarget {
  const target = STATEFUL_TARGETS.find((one) => one.name === name);
  if (target === undefined) throw new RangeError(`no target ${name}`);
  return target;
}

/** A place of a target, and the commands that the target has for it. All tables are written. */
export class TargetFixture {
  readonly name: TargetName | 'example';
  readonly fixture: PlaceFixture;
  readonly target: StatefulTarget;

  constructor(name: TargetName | 'example', fixture: PlaceFixture, target: StatefulTarget) {
    this.name = name;
    this.fixture = fixture;
    this.target = target;
  }

  /** A place of any target. */
  static of(name: TargetName): TargetFixture {
    return name === 'duckdb' ? new TargetFixture(name, new DuckDbFixture(), duckdb) : new FilesFixture(name);
  }

  get place(): string {
    return this.fixture.place;
  }

  get options(): FilesSinkOptions {
    const { targetOptions, place, dir } = this.fixture;
    const more = { place, spoolDir: join(dir, 'spool'), env: () => undefined, retentionMs: DEFAULT_RETENTION_MS };
    return { ...targetOptions, ...more, tables: TABLES };
  }

  /** Opens the place for loading. */
  open(options: Partial<FilesSinkOptions> = {}): Promise<Sink> {
    const { place = this.place, signal = this.fixture.signal, retentionMs = DEFAULT_RETENTION_MS } = options;
    const more = { retentionMs, signal, stdout: process.stdout };
    return this.target.open(place, { ...this.options, ...options, ...more });
  }

  /** Opens, commits each of these, a window alone or a batch whose windows are announced first as in a run, and closes. */
  async store(
    batches: readonly (Window | readonly Window[])[],
    options: Partial<FilesSinkOptions> = {},
  ): Promise<Commit[]> {
    const sink = await this.open(options);
    try {
      const done: Commit[] = [];
      for (const batch of batches.map((one) => [one].flat())) {
        if (batch.length > 1) for (const window of batch) sink.begin?.(window);
        for (let rest: readonly Window[] = batch; rest.length > 0; ) {
          const commit = await sink.commit(rest, this.fixture.signal).catch((error: unknown) => {
            if (rest.length === 1 || !(error instanceof SharedIds)) throw error;
            return sink.commit(rest.slice(0, 1), this.fixture.signal);
          });
          done.push(commit);
          rest = rest.slice(commit.windows);
        }
      }
      return done;
    } finally {
      await sink.close();
    }
  }

  read(sql: string): Promise<Record<string, unknown>[]> {
    return this.fixture.read(sql);
  }

  /** The keys of all rows, in their order; none if no file is left. */
  async keys(): Promise<unknown[]> {
    if (!this.files().some((path) => /\.(duckdb|parquet)$/.test(path))) return [];
    return (await this.read('SELECT _key FROM events ORDER BY 1')).map(({ _key }) => _key);
  }

  async verify(options: { readonly signal?: AbortSignal } = {}) {
    return (await this.target.maintenance()).verify(this.place, { ...this.options, ...options });
  }

  async report() {
    return (await this.target.maintenance()).report(this.place, this.options);
  }

  async compact() {
    return (await this.target.maintenance()).compact(this.place, this.options);
  }

  async priorLoads() {
    return priorLoadsOf(await (await this.target.maintenance()).readState(this.place, this.options));
  }

  async people(query: PeopleQuery) {
    return (await this.target.people()).find(this.place, query, this.options);
  }

  async tryPurge(query: PeopleQuery) {
    return (await this.target.people()).tryPurge(this.place, query, this.options);
  }

  async purge(query: PeopleQuery) {
    return (await this.target.people()).purge(this.place, query, { ...this.options, onFound: async () => {} });
  }

  /** Every file of the place, by its whole path. */
  files(): string[] {
    return this.fixture.stored();
  }

  /** Those that hold a text. */
  filesWith(text: string): string[] {
    return this.files().filter((path) => readFileSync(path).includes(text));
  }

  close(): void {
    this.fixture.close();
  }
}

/** A place of a target that keeps a table of files, whose commits are counted. */
export class FilesFixture extends TargetFixture {
  readonly format: FilesFormat;
  /** Changes that were committed. */
  commits = 0;

  constructor(name: FileTargetName | 'example') {
    const { format, newFixture } = LOGS[name];
    const counting: FilesFormat = { ...format, open: (...of) => this.#opened(format.open(...of)) };
    const described = {
      name,
      place: { name: 'dir', describe: '' },
      label: '',
      markers: [],
      summaries: { sync: '', compact: '' },
    } as const;
    super(
      name,
      newFixture(),
      filesTarget(described, async () => counting),
    );
    this.format = counting;
  }

  /** Reads the snapshot of the log; undefined if nothing was committed. */
  async snapshot(): Promise<Snapshot | undefined> {
    const { log, close } = await this.format.open(this.options, 'read');
    await close();
    return log.snapshot;
  }

  async #opened(opening: ReturnType<FilesFormat['open']>) {
    const place = await opening;
    const commit = place.log.commit.bind(place.log);
    place.log.commit = async (...of) => {
      await commit(...of);
      this.commits++;
    };
    return place;
  }
}
