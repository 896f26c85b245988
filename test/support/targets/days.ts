import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { type Clock, DAY_MS, systemClock } from '../../../src/base/clock.ts';
import { addDays, type Day, startOf } from '../../../src/base/days.ts';
import { createLogger, type LogEvent } from '../../../src/base/log.ts';
import { ExportScanner } from '../../../src/cells/columns/export-scanner.ts';
import type { CheckedDay, CheckedFile, Receipt } from '../../../src/extract/checked-day.ts';
import type { HashedColumns } from '../../../src/extract/export-settings.ts';
import type { CommitInfo } from '../../../src/extract/export-state.ts';
import type { ColumnSettings } from '../../../src/table/column-type.ts';
import type { LoadOptions } from '../../../src/targets/contract.ts';
import { newFolder } from '../new-folder.ts';
import { scanIn } from '../scan.ts';
import { type Cells, csvOf, on } from './csv.ts';

const HASH = '0'.repeat(64);

/** Options of a place; the settings of its columns, too. */
export type PlaceSettings = Partial<LoadOptions & ColumnSettings>;

/** Downloads of days, made of rows, and the options with which a place is opened. */
export class Days {
  readonly dir = newFolder();
  readonly log: LogEvent[] = [];
  readonly signal: AbortSignal = new AbortController().signal;
  clock: Clock = systemClock;
  /** Zone of the datetimes of the days made from now on, and of the place. */
  timezone: string | undefined;
  #made = 0;

  /** A day of these rows, at ten o'clock of it unless a row says otherwise. */
  of(day: Day, rows: readonly Cells[], receiptPart: Partial<Receipt> = {}): CheckedDay {
    const timed = rows.map((row) => ({ ...on(day), ...row }));
    return this.ofCsv(day, [csvOf(timed)], receiptPart);
  }

  /** A day whose files hold these texts. */
  ofCsv(day: Day, csv: readonly string[], receiptPart: Partial<Receipt> = {}): CheckedDay {
    const files = csv.map((text) => this.#spool(text));
    const text = csv.join('');
    // Later downloads of a day are requested later.
    const requestedAt = startOf(day) + 3 * DAY_MS + ++this.#made * 1_000;
    const receipt: Receipt = {
      v: 1,
      day,
      to_date: day,
      requested_at: new Date(requestedAt).toISOString(),
      is_over: true,
      filters: HASH,
      rows: files.reduce((sum, file) => sum + file.rows, 0),
      suppressed: 0,
      bytes: text.length,
      sha256: createHash('sha256').update(text).digest('hex'),
      exports: files.length,
      invalid_utf8: 0,
      verified_at: new Date(requestedAt + 500).toISOString(),
      ...receiptPart,
    };
    return { receipt, files };
  }

  /** A day that may share rows with its neighbours, since the end of an export is not known. */
  shared(day: Day, rows: readonly Cells[]): CheckedDay {
    return this.ofCsv(day, [csvOf(rows)], { to_date: addDays(day, 1) });
  }

  commitInfo(start: Day, hashedColumns?: HashedColumns): CommitInfo {
    return {
      start,
      // Days that were loaded before have another hash of their settings.
      fingerprints: { serviceHash: HASH, filtersHash: hashedColumns?.key_check.padEnd(64, '0') ?? HASH, hashedColumns },
      alwaysWrites: false,
      includesToDate: true,
    };
  }

  /** The options of a place. */
  options({
    timezone = this.timezone ?? null,
    columnTypes = new Map(),
    schemaMode = 'evolve',
    pinnedTypes,
    ...more
  }: PlaceSettings = {}): LoadOptions {
    const logger = createLogger(
      (event) => this.log.push(event),
      'debug',
      (text) => text,
    );
    return {
      address: this.dir,
      columnSettings: { timezone, columnTypes, schemaMode, pinnedTypes },
      memoryLimit: '500MB',
      lockWaitMs: 0,
      clock: this.clock,
      logger,
      env: {},
      spoolDir: join(this.dir, 'spool'),
      retentionMs: DAY_MS,
      loadsProfiles: false,
      stdout: new PassThrough(),
      signal: this.signal,
      ...more,
    };
  }

  /** A snapshot of profiles, as a download of the day at which it was requested. */
  snapshot(csv: string, receiptPart: Partial<Receipt> = {}): CheckedDay {
    const download = this.ofCsv('2026-01-05', [], receiptPart);
    const file = this.#spool(csv);
    return { ...download, receipt: { ...download.receipt, rows: file.rows, ...receiptPart }, files: [file] };
  }

  #spool(csv: string): CheckedFile {
    const scanner = new ExportScanner({ timezone: this.timezone, needsEventColumns: false });
    const { result, written } = scanIn(scanner, Buffer.from(csv));
    const path = join(this.dir, `spool-${++this.#made}.csv`);
    writeFileSync(path, written);
    return { path, bytes: written.length, sha256: '', ...result };
  }
}
