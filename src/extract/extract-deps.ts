import { formatDuration, HOUR_MS } from '../base/durations.ts';
import { configError } from '../base/errors.ts';
import type { RunContext, Runtime } from '../base/runtime.ts';
import type { ColumnEdits } from '../cells/columns/column-edits.ts';
import type { Suppression } from '../cells/columns/scanner.ts';
import { defaultSpoolDir } from '../config/local.ts';
import type { SourceConfig } from '../config/source.ts';
import type { ExportAnswer, ExportService } from '../service/export/protocol.ts';
import { editsOf } from './export-request.ts';

export interface ExtractDeps extends RunContext, Pick<SourceConfig, 'maxConcurrentExports' | 'timezone'> {
  readonly service: ExportService;
  /** Folder under which the folder of the run is made. */
  readonly spoolDir: string;
  readonly suppression?: Suppression | undefined;
  /** Columns that are dropped or hashed before anything is written. */
  readonly edits: ColumnEdits;
  /** Columns to drop or hash that no export of this run has had so far. At the end the run warns of them. */
  readonly unseenColumns: Set<string>;
  readonly counts: DownloadCounts;
  readonly onAnswer: (answer: ExportAnswer) => void;
}

export function extractDeps(
  config: SourceConfig & { readonly spoolDir?: string },
  service: ExportService,
  runtime: Runtime,
  suppression?: Suppression,
): ExtractDeps {
  const { spoolDir = defaultSpoolDir(), timezone, maxConcurrentExports } = config;
  return {
    ...runtime,
    service,
    spoolDir,
    timezone,
    maxConcurrentExports,
    suppression,
    edits: editsOf(config),
    unseenColumns: new Set([...config.columnsDrop, ...config.columnsHash]),
    ...observeAnswers(runtime),
  };
}

/** What is counted, also of attempts that fail. */
export interface DownloadCounts {
  /** Number of exports that the service answered. */
  exports: number;
  /** Bytes of CSV received. */
  bytes: number;
}

/** Differences between the clocks (ms) from which a run warns, and from which it ends. */
const CLOCK_WARNING_MS = HOUR_MS;
const CLOCK_LIMIT_MS = 12 * HOUR_MS;

/**
 * Counts the answers of a run, and compares the service's clock with that of this machine. It warns of the first
 * difference of more than an hour. Above twelve hours the wrong days would be read: it throws a configuration failure.
 */
export function observeAnswers({ clock, logger }: Pick<Runtime, 'clock' | 'logger'>) {
  const counts: DownloadCounts = { exports: 0, bytes: 0 };
  let isWarned = false;
  const onAnswer = (answer: ExportAnswer) => {
    if (answer.kind === 'data' || answer.status !== undefined) counts.exports++;
    const now = clock.now();
    const { serverTime = now } = answer;
    const apart = Math.abs(now - serverTime);
    if (apart <= CLOCK_WARNING_MS) return;
    const [here, there] = [now, serverTime].map((time) => new Date(time).toISOString());
    const message = `The clock of this machine (${here}) and that of the service (${there}) are ${formatDuration(apart)} apart`;
    if (apart > CLOCK_LIMIT_MS) throw configError(`${message}: set this clock right, nothing was stored with it.`);
    if (!isWarned) logger.warn('clock.apart', `${message}.`);
    isWarned = true;
  };
  return { counts, onAnswer };
}
