import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, type Day } from '../../../src/base/days.ts';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import type { SpoolFile, Window } from '../../../src/extract/window.ts';
import { Scanner } from '../../../src/schema/scanner.ts';
import { type DuckDbSinkOptions, openDuckDbSink } from '../../../src/sinks/duckdb/sink.ts';
import type { Commit, Sink } from '../../../src/sinks/sink.ts';
import type { ColumnType } from '../../../src/types/type.ts';
import { scanIn } from '../scan.ts';
import { query } from './query.ts';

export type Cells = Readonly<Record<string, string>>;

/** A folder with one database file and the spool files of the windows made here. */
export class DuckDbFixture {
  readonly dir = mkdtempSync(join(tmpdir(), 'dfinery-duckdb-'));
  readonly file = join(this.dir, 'events.duckdb');
  /** The place as a command gets it: the file. */
  readonly place: string = this.file;
  readonly log: LogEvent[] = [];
  readonly signal: AbortSignal = new AbortController().signal;
  #files = 0;

  /** A window over `day` whose files hold these CSV texts. */
  window(day: Day, csv: string | readonly string[], timezone?: string, days = 1): Window {
    const files = [csv].flat().map((text) => this.spool(text, timezone));
    return {
      files,
      receipt: {
        v: 1,
        id: `${day}-${++this.#files}`,
        from: day,
        to: addDays(day, days - 1),
        covers_from: day,
        covers_to: addDays(day, days - 1),
        bytes: [csv].flat().join('').length,
        sha256: createHash('sha256').update([csv].flat().join('')).digest('hex'),
        rows: files.reduce((sum, file) => sum + file.rows, 0),
        exports: files.length,
        header: files[0].header,
        columns: files[0].columns,
        split: files.length > 1 ? 'names' : 'none',
        verified_at: '2026-02-01T00:00:00.000Z',
        suppressed: 0,
        invalid_utf8: 0,
      },
      state: { version: 1, from_date: addDays(day, days) },
    };
  }

  /** A window of one day with these rows, at ten o'clock of it unless a row says otherwise. */
  windowOf(day: Day, ...rows: readonly Cells[]): Window {
    return this.window(day, csvOf(rows.map((row) => ({ ...on(day), ...row }))));
  }

  spool(csv: string, timezone?: string): SpoolFile {
    const { result, written } = scanIn(new Scanner({ timezone, requireSystem: false }), Buffer.from(csv));
    const path = join(this.dir, `spool-${++this.#files}.csv`);
    writeFileSync(path, written);
    const { header, columns, rows, longestRow, hasDuplicateOrMissingIds, rowEnds, eventNames } = result;
    return { path, header, columns, rows, longestRow, hasDuplicateOrMissingIds, rowEnds, eventNames };
  }

  open(options: Partial<DuckDbSinkOptions> = {}): Promise<Sink> {
    return openDuckDbSink({ file: this.file, ...this.targetOptions, ...options });
  }

  /** The options of a target in a test without others. */
  get targetOptions() {
    const logger = createLogger(
      (event) => this.log.push(event),
      'debug',
      (text) => text,
    );
    return {
      timezone: undefined,
      columnTypes: new Map<string, ColumnType>(),
      schemaMode: 'evolve' as const,
      memoryLimit: '500MB',
      lockWaitMs: 0,
      clock: systemClock,
      logger,
    };
  }

  /** Opens, commits these windows, closes. */
  async load(windows: readonly Window[], options: Partial<DuckDbSinkOptions> = {}): Promise<Commit[]> {
    return this.commitAll(await this.open(options), windows);
  }

  async commitAll(sink: Sink, windows: readonly Window[]): Promise<Commit[]> {
    try {
      const commits: Commit[] = [];
      for (const window of windows) commits.push(await sink.commit([window], this.signal));
      return commits;
    } finally {
      await sink.close();
    }
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

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A place whose files all lie below one folder. */
export abstract class FolderFixture extends DuckDbFixture {
  abstract readonly root: string;

  /** Every file below the folder, or one in it, from there, sorted. */
  files(folder = ''): string[] {
    const root = join(this.root, folder);
    return filesBelow(root).map((path) => path.slice(root.length + 1));
  }

  override stored(): string[] {
    return filesBelow(this.root);
  }
}

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}

const SYSTEM = [
  'df_api_version',
  'df_correction_datetime',
  'df_event_detail_log_id',
  'df_event_log_id',
  'df_event_name',
];

/** The times of an event on a day. */
export const on = (day: Day, time = '10:00:00.000'): Cells => ({
  df_server_datetime: `${day} ${time}`,
  df_correction_datetime: `${day} ${time}`,
});

/** CSV of events `{ id, … }`: the columns that every export has, filled in where they are not given. */
export function csvOf(rows: readonly Cells[], columns: readonly string[] = []): string {
  const custom = new Set([...columns, ...rows.flatMap((row) => Object.keys(row).filter((name) => name !== 'id'))]);
  const header = [...new Set([...SYSTEM, 'df_server_datetime', 'df_unified_id', ...custom])].sort();
  const lines = rows.map((row) => header.map((name) => quoted(row[name] ?? common(row.id, name))).join(','));
  return `${[header.map(quoted).join(','), ...lines].join('\n')}\n`;
}

function common(id: string | undefined, name: string): string {
  if (name === 'df_event_detail_log_id') return id ?? '';
  if (name === 'df_event_log_id') return id === undefined ? '' : id.replace(/:\d+$/, '');
  if (name === 'df_event_name') return 'df_login';
  if (name === 'df_unified_id') return 'u-1';
  return name.endsWith('_datetime') && SYSTEM.concat('df_server_datetime').includes(name)
    ? '2026-01-01 10:00:00.000'
    : '';
}

export const quoted = (text: string): string => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Rows of 46 columns; one cell holds pasted rows across the end of a block of eight megabytes. */
export function pastedRows(): string {
  const names = Array.from({ length: 40 }, (_, i) => `c${String(i).padStart(2, '0')}`);
  const cells = (i: number): Cells => Object.fromEntries(names.map((name, k) => [name, `v${k}_${i % 97}`]));
  const [header, ...lines] = csvOf(Array.from({ length: 97 }, (_, i) => ({ id: 'ID', ...cells(i) })))
    .trimEnd()
    .split('\n');
  const lineOf = (id: string, i: number) => (lines[i % 97] ?? '').replaceAll('ID', id);
  const block = Array.from({ length: 4_000 }, (_, i) => lineOf(`p${i}`, i)).join('\n');
  const all = [header];
  for (let bytes = 0, i = 0; bytes < 20e6; i++) {
    let line = lineOf(`i${i}`, i);
    if (bytes < 7.7e6 && bytes + line.length + 1 >= 7.7e6) line = line.replace(/,v5_\d+,/, `,"${block}",`);
    all.push(line);
    bytes += line.length + 1;
  }
  return `${all.join('\n')}\n`;
}
