import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type Day, isDay } from '../../src/base/days.ts';
import { query } from '../support/targets/query.ts';
import { rowText } from './truth.ts';

export type TargetName = 'duckdb' | 'parquet' | 'delta';
export const TARGETS: readonly TargetName[] = ['duckdb', 'parquet', 'delta'];

/** The rows of a place as its readers see them: by `event_date`, each as one text, sorted. */
export type Stored = ReadonlyMap<Day, readonly string[]>;

const OURS = new Set(['event_date', '_key', '_rescued', '_loaded_at']);
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;

/** A place, read without any code of the program, and changed as its owner might. */
export class Place {
  readonly target: TargetName;
  readonly path: string;

  constructor(target: TargetName, dir: string) {
    this.target = target;
    this.path = join(dir, target === 'duckdb' ? 'events.duckdb' : target);
  }

  get words(): [string, string] {
    return [this.target, this.path];
  }

  get exists(): boolean {
    return this.target === 'duckdb' ? existsSync(this.path) : existsSync(join(this.path, 'events'));
  }

  async stored(): Promise<Stored> {
    const rows = this.exists ? await this.#rows() : [];
    const days = new Map<Day, string[]>();
    for (const row of rows) {
      const day = String(row.event_date);
      const text = rowText(Object.entries(row).filter(([name]) => !OURS.has(name)));
      days.set(day, [...(days.get(day) ?? []), text]);
    }
    for (const texts of days.values()) texts.sort();
    return days;
  }

  #rows(): Promise<Record<string, unknown>[]> {
    if (this.target === 'duckdb')
      return query(this.path, 'SELECT * REPLACE (event_date::VARCHAR AS event_date) FROM events');
    if (this.target === 'parquet') return readParquet(this.path);
    return readDelta(join(this.path, 'events'));
  }

  /** Removes a day, as people do who want the space back. */
  async removeDay(day: Day): Promise<void> {
    if (this.target === 'duckdb') await query(this.path, `DELETE FROM events WHERE event_date = ${literal(day)}`);
    else rmSync(join(this.path, 'events', `event_date=${day}`), { recursive: true, force: true });
  }

  backUp(to: string): void {
    rmSync(to, { recursive: true, force: true });
    cpSync(this.path, to, { recursive: true });
  }

  restore(from: string): void {
    rmSync(this.path, { recursive: true, force: true });
    rmSync(`${this.path}.wal`, { force: true });
    cpSync(from, this.path, { recursive: true });
  }
}

/** All files of a Parquet folder; names of temporary files do not end in `.parquet`. */
async function readParquet(folder: string): Promise<Record<string, unknown>[]> {
  const days = existsSync(join(folder, 'events'))
    ? readdirSync(join(folder, 'events')).filter((name) => /^event_date=/.test(name))
    : [];
  const files = days.filter((name) =>
    readdirSync(join(folder, 'events', name)).some((file) => file.endsWith('.parquet')),
  );
  if (files.length === 0) return [];
  const glob = literal(join(folder, 'events', '*', '*.parquet'));
  const options = 'hive_partitioning = true, hive_types = {event_date: VARCHAR}';
  // All live files have the same columns: a reader that takes those of the first file must find them in the others.
  return query(':memory:', `SELECT * FROM read_parquet(${glob}, ${options})`);
}

interface Action {
  readonly add?: { readonly path: string; readonly partitionValues: { readonly event_date: Day } };
  readonly remove?: { readonly path: string };
}

/** The rows of a Delta table, from its log: the last checkpoint and the entries after it. */
async function readDelta(table: string): Promise<Record<string, unknown>[]> {
  const log = join(table, '_delta_log');
  const names = readdirSync(log).sort();
  const checkpoint = names.findLast((name) => name.endsWith('.checkpoint.parquet'));
  const version = checkpoint === undefined ? -1 : Number(basename(checkpoint).slice(0, 20));
  const live = new Map<string, Day>();
  if (checkpoint !== undefined) {
    const adds = `SELECT add.path AS path, add.partitionValues AS of FROM read_parquet(${literal(join(log, checkpoint))}) WHERE add IS NOT NULL`;
    for (const { path, of } of await query(':memory:', adds)) live.set(String(path), dayIn(of));
  }
  const entries = names.filter((name) => /^\d{20}\.json$/.test(name) && Number(name.slice(0, 20)) > version);
  for (const name of entries) {
    const actions = readFileSync(join(log, name), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line): Action => JSON.parse(line));
    for (const { remove } of actions) if (remove !== undefined) live.delete(remove.path);
    for (const { add } of actions) if (add !== undefined) live.set(add.path, add.partitionValues.event_date);
  }
  if (live.size === 0) return [];
  const files = [...live].map(([path, day]) => {
    const file = literal(join(table, decodeURIComponent(path)));
    return `SELECT ${literal(day)} AS event_date, * FROM read_parquet(${file}, hive_partitioning = false)`;
  });
  return query(':memory:', files.join(' UNION ALL BY NAME '));
}

/** The day of a file in a checkpoint: the one value of a map. */
function dayIn(partitionValues: unknown): Day {
  const day = JSON.stringify(partitionValues).match(/\d{4}-\d\d-\d\d/)?.[0] ?? '';
  if (!isDay(day)) throw new Error(`no day in ${JSON.stringify(partitionValues)}`);
  return day;
}
