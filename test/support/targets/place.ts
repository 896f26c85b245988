import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Day } from '../../../src/base/days.ts';
import { literal } from '../../../src/base/sql.ts';
import type { CheckedDay } from '../../../src/extract/checked-day.ts';
import type { CommitResult } from '../../../src/table/commit.ts';
import { type TableName, USER_PROFILES } from '../../../src/table/tables.ts';
import type { LoadOptions, OnFound, StatefulTarget } from '../../../src/targets/contract.ts';
import { compactFile } from '../../../src/targets/duckdb/file-copy.ts';
import { STATEFUL_TARGETS } from '../../../src/targets/targets.ts';
import { Days, type PlaceSettings } from './days.ts';
import { liveDeltaFiles } from './delta-files.ts';
import type { FakeS3 } from './fake-s3.ts';
import { query } from './query.ts';

export type TargetName = 'duckdb' | 'parquet' | 'delta';
export const TARGET_NAMES: readonly TargetName[] = ['duckdb', 'parquet', 'delta'];

/** A place of a target, used through its interface alone, and read as its readers do. */
export class Place extends Days {
  readonly target: StatefulTarget;
  readonly place: string;
  /** The place on the disk; of a bucket a copy of it. */
  readonly root: string;

  readonly bucket: FakeS3 | undefined;

  /** `bucket`: a Delta table in it. */
  constructor(name: TargetName, bucket?: FakeS3) {
    super();
    this.bucket = bucket;
    const target = STATEFUL_TARGETS.find((candidate) => candidate.name === name);
    if (target === undefined) throw new Error(`no target ${name}`);
    this.target = target;
    const folder = join(this.dir, 'place');
    mkdirSync(folder);
    const local = join(folder, name === 'duckdb' ? 'events.duckdb' : 'lake');
    this.place = bucket === undefined ? local : 's3://bucket/lake';
    this.root = local;
  }

  override options(more: PlaceSettings = {}): LoadOptions {
    return super.options({ address: this.place, ...(this.bucket !== undefined && { env: this.bucket.env }), ...more });
  }

  open(more: PlaceSettings = {}) {
    return this.target.open(this.options(more));
  }

  maintenance() {
    return this.target.maintenance(this.options());
  }

  peopleOperations() {
    return this.target.peopleOperations(this.options());
  }

  /** Opens the place, commits each batch, closes it. */
  async load(batches: readonly (readonly CheckedDay[])[], more: PlaceSettings = {}): Promise<CommitResult[]> {
    const start = batches.flat()[0]?.receipt.day ?? '2026-01-01';
    const sink = await this.open(more);
    try {
      const commits: CommitResult[] = [];
      for (const batch of batches) commits.push(await sink.commit(batch, this.commitInfo(start)));
      return commits;
    } finally {
      await sink.close();
    }
  }

  /** Opens the place, replaces the table of profiles by a snapshot, closes it. */
  async loadProfiles(snapshot: CheckedDay, more: PlaceSettings = {}): Promise<number | undefined> {
    const sink = await this.open({ loadsProfiles: true, ...more });
    try {
      const { daysWritten, rowsWritten } = await sink.commit(
        [snapshot],
        this.commitInfo(snapshot.receipt.day),
        USER_PROFILES,
      );
      return daysWritten.length === 0 ? undefined : rowsWritten;
    } finally {
      await sink.close();
    }
  }

  /** Rows of a query over `user_profiles`, as a reader of the place sees them. */
  readProfiles(sql: string): Promise<Record<string, unknown>[]> {
    return this.#read('user_profiles', sql);
  }

  /** Rows of a query over `events`, as a reader of the place sees them. */
  read(sql: string): Promise<Record<string, unknown>[]> {
    this.bucket?.dump('lake/', this.root);
    return this.#read('events', sql);
  }

  #read(table: TableName, sql: string) {
    const { name } = this.target;
    return name === 'duckdb' ? query(this.place, sql) : readFiles(this.root, name === 'delta', table, sql);
  }

  /** `event_date` and `_key` of every row, sorted. */
  async keys(): Promise<string[]> {
    const rows = await this.read("SELECT event_date::VARCHAR || ' ' || _key AS k FROM events ORDER BY 1");
    return rows.map(({ k }) => String(k));
  }

  async state() {
    return (await this.maintenance()).readState();
  }

  async verify() {
    return (await this.maintenance()).verify();
  }

  compact() {
    return compactFile(this.options());
  }

  async report() {
    return (await this.maintenance()).report();
  }

  async prune(before: Day, execute: boolean) {
    return (await this.maintenance()).prune(before, execute);
  }

  /** `onFound`: the length of the suppression list that the place is to remember. */
  async purge(ids: readonly string[], column = 'member', onFound: OnFound = async () => 0) {
    return (await this.peopleOperations()).purge({ ids, byColumn: column }, onFound);
  }

  async find(ids: readonly string[], column = 'member') {
    return (await this.peopleOperations()).find({ ids, byColumn: column });
  }

  /** Every file of the place, by its whole path. */
  files(): string[] {
    return filesBelow(this.target.name === 'duckdb' ? dirname(this.root) : this.root);
  }
}

/** Rows of a query over the Parquet files of a table: those that its Delta log names, or all that are there. */
export async function readFiles(place: string, isDelta: boolean, table: TableName, sql: string) {
  const folder = join(place, table);
  const days = isDelta ? await liveDeltaFiles(folder) : daysOfFiles(folder);
  if (days.size === 0) return [];
  const paths = [...days.keys()].map(literal);
  // Without a Delta log all files have the same columns: a reader that takes those of the first must find them in the others.
  const files = `read_parquet([${paths}], hive_partitioning = false, filename = true, union_by_name = ${isDelta})`;
  const dayOfFile = [...days].map(([path, day]) => `${literal(path)}: ${literal(day)}`);
  const day = table === 'events' ? `CAST(MAP {${dayOfFile}}[filename] AS DATE) AS event_date,` : '';
  return query(':memory:', `WITH ${table} AS (SELECT ${day} * EXCLUDE (filename) FROM ${files}) ${sql}`);
}

/** The Parquet files below a folder, with the day by which their own folder is named. */
function daysOfFiles(folder: string): ReadonlyMap<string, string> {
  const paths = filesBelow(folder).filter((path) => path.endsWith('.parquet'));
  return new Map(paths.map((path) => [path, /event_date=([^/]+)/.exec(path)?.[1] ?? '']));
}

/** Every file below a folder, by its whole path, sorted. */
export function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
