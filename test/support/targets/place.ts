import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, type Day } from '../../../src/base/days.ts';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import { Scanner } from '../../../src/cells/columns/scanner.ts';
import type { ColumnType } from '../../../src/cells/types/type.ts';
import type { SpoolFile, Window } from '../../../src/extract/window.ts';
import type { Commit, Sink } from '../../../src/targets/sink.ts';
import { scanIn } from '../scan.ts';
import { type Cells, csvOf, on } from './csv.ts';

/** A place of a target, and a folder with the spool files of the windows made here. */
export abstract class PlaceFixture {
  readonly dir = mkdtempSync(join(tmpdir(), 'dfinery-place-'));
  readonly log: LogEvent[] = [];
  readonly signal: AbortSignal = new AbortController().signal;
  #files = 0;
  /** The place as a command gets it. */
  abstract readonly place: string;

  /** A query over `events`, `event_items` or `event_logs` as a reader of the place sees them. */
  abstract read(sql: string): Promise<Record<string, unknown>[]>;

  /** Every file of the place, by its whole path. */
  abstract stored(): string[];

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
    const { header, columns, rows, longestRow, hasDuplicateOrMissingIds, eventNames } = result;
    return { path, header, columns, rows, longestRow, hasDuplicateOrMissingIds, eventNames };
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

  async commitAll(sink: Sink, windows: readonly Window[]): Promise<Commit[]> {
    try {
      const commits: Commit[] = [];
      for (const window of windows) commits.push(await sink.commit([window], this.signal));
      return commits;
    } finally {
      await sink.close();
    }
  }

  close(): void {
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** A place whose files all lie below one folder. */
export abstract class FolderFixture extends PlaceFixture {
  abstract readonly root: string;

  /** Every file below the folder, or one in it, from there, sorted. */
  files(folder = ''): string[] {
    const root = join(this.root, folder);
    return filesBelow(root).map((path) => path.slice(root.length + 1));
  }

  stored(): string[] {
    return filesBelow(this.root);
  }
}

/** Every file below a folder, by its whole path, sorted. */
export function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
}
