import type { Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { count } from '../../base/quantities.ts';
import type { Suppression } from '../../cells/columns/scanner.ts';
import { requireSuppression, suppressionOf } from '../../erasure/suppression.ts';
import { hashedColumns, hashesOf } from '../../extract/export-request.ts';
import { checkState, isEndIncluded } from '../../extract/export-state.ts';
import { checkNeedsFile, checkNotFewer, dayFromFile } from '../../extract/file-day.ts';
import type { RunProgress } from '../../extract/receipt.ts';
import { editsOf } from '../../extract/session.ts';
import { RunFolder } from '../../extract/spool.ts';
import type { Commit } from '../../table/batch.ts';
import type { Sink } from '../../targets/contract.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { argument, day, defineCommand, required, text } from '../command.ts';
import { type CliConfiguration, openOptions } from '../configuration.ts';
import type { Context } from '../context.ts';
import { openPlace, placeArguments } from '../place-arguments.ts';
import { EMPTY_SUMMARY } from '../results.ts';
import { during } from '../run/progress.ts';
import { recordRun } from '../run/run.ts';
import type { RunResult } from '../run/summary.ts';

const OPTIONS = {
  ...placeArguments(STATEFUL_TARGETS),
  file: argument(required(text('The CSV file of the day'))),
  day: required(day('The day whose rows it has, yyyy-MM-dd')),
};

export const command = defineCommand({
  options: OPTIONS,
  examples: [
    'load duckdb events.duckdb 2026-01-17.csv --day 2026-01-17',
    'load delta s3://bucket/events 2026-01-17.csv --day 2026-01-17',
  ],
  page: 'days-and-types.md',
  async run({ file, day: named, ...values }, context) {
    const { configuration, target, place } = openPlace('load', values, STATEFUL_TARGETS, context);
    const config = { ...configuration.settings(), ledgerDir: configuration.ledgerDir };
    const suppression = suppressionOf(config);
    const began = context.clock.now();
    const maintenance = await target.maintenance();
    if ((await maintenance.readState(place, configuration.placeOptions()))?.exportState === undefined)
      throw configError(`${place} holds nothing yet: sync first, then load what the service no longer exports.`);
    const sink = await target.open(place, openOptions(config, context));
    let ended: RunResult = { summary: EMPTY_SUMMARY };
    try {
      const work = loadDay(sink, { file, day: named, place, config, suppression }, context);
      const commit = await during(`Loading ${file}`, work, context);
      const cursor = sink.state?.exportState?.from_date ?? null;
      ended = { summary: { ...EMPTY_SUMMARY, rows: commit.rows, days: 1, days_changed: commit.daysChanged } };
      const result = { v: 1, target: target.name, place, file, day: named, rows: commit.rows, cursor };
      return { result: { ...result, days_changed: commit.daysChanged }, lines: [lineOf(result)] };
    } catch (error) {
      ended = { ...ended, error };
      throw error;
    } finally {
      try {
        await recordRun(sink, began, ended, context);
      } finally {
        await sink.close();
      }
    }
  },
});

interface Loading {
  readonly file: string;
  readonly day: Day;
  readonly place: string;
  readonly config: ReturnType<CliConfiguration['settings']>;
  readonly suppression: Suppression | undefined;
}

async function loadDay(sink: Sink, loading: Loading, context: Context): Promise<Commit> {
  const { file, day: named, place, config, suppression } = loading;
  const { clock, signal } = context;
  const now = clock.now();
  const { exportState, receipts, suppressionLength = 0 } = sink.state ?? {};
  requireSuppression(place, suppressionLength, suppression);
  const hashes = hashesOf(config);
  checkState(exportState, hashes, { now, fullRefresh: false });
  const stored = receipts?.get(named);
  checkNeedsFile(named, stored, { now, historyDays: config.historyDays });
  const folder = await RunFolder.open(config.spoolDir, clock, 'spool');
  try {
    const download = await dayFromFile(file, named, {
      folder,
      filters: hashes.filters,
      timezone: config.timezone,
      edits: editsOf(config),
      suppression,
      toDateInclusive: isEndIncluded(config, exportState),
      finalNewline: exportState?.final_newline,
      now,
      signal,
    });
    checkNotFewer(file, download, stored);
    const run: RunProgress = {
      now,
      start: exportState?.start_date ?? named,
      hashes,
      hashing: hashedColumns(config),
      appends: false,
      rewrites: true,
      gaps: [],
      toDateInclusive: undefined,
      finalNewline: undefined,
    };
    return await sink.commit([download], run, signal);
  } finally {
    await folder.remove();
  }
}

const lineOf = ({ rows, day: named, place, cursor }: { rows: number; day: Day; place: string; cursor: Day | null }) =>
  `${count(rows, 'row')} of ${named} are in ${place}${cursor === null ? '' : `; the cursor is at ${cursor}`}.`;
