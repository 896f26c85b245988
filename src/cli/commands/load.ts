import type { Day } from '../../base/days.ts';
import { configError } from '../../base/errors.ts';
import { formatCount } from '../../base/quantities.ts';
import { readFilterForPlace } from '../../erasure/suppression-list.ts';
import { loadDayFromFile } from '../../extract/day-from-file.ts';
import type { Sink } from '../../targets/contract.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { dayOption, defineCommand, pathOption, required } from '../command.ts';
import { type PlanConfig, requirePlanKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { loadOptions, readPlaceAndConfig, storedState } from '../places.ts';
import { EMPTY_SUMMARY } from '../results.ts';
import { type RunOutcome, withRunRecord } from '../run/run.ts';
import { withElapsedTime } from '../terminal/progress.ts';

export const command = defineCommand({
  targets: STATEFUL_TARGETS,
  arguments: { file: required(pathOption('The CSV file of the day')) },
  options: { day: required(dayOption('The day whose rows it has, yyyy-MM-dd')) },
  examples: [
    'load duckdb events.duckdb 2026-01-17.csv --day 2026-01-17',
    'load delta s3://bucket/events 2026-01-17.csv --day 2026-01-17',
  ],
  docsPage: 'days-and-types.md',
  async run({ file, day, ...values }, context) {
    const { config, place } = readPlaceAndConfig(values, STATEFUL_TARGETS, context);
    const { target, address } = place;
    const planConfig = requirePlanKeys(config);
    const state = await storedState(place);
    if (state?.events.exportState === undefined)
      throw configError(`${address} holds nothing yet: sync first, then load what the service no longer exports.`);
    const sink = await target.open(loadOptions(place, config, context));
    const work = () => withElapsedTime(`Loading ${file}`, loadDay(sink, { file, day }, planConfig, context), context);
    const { summary, failure } = await withRunRecord(sink, work, context);
    if (failure !== undefined) throw failure.error;
    const { rows, days_changed, next_from_date: cursor } = summary;
    const rowsText = formatCount(rows, `row of ${day} is`, `rows of ${day} are`);
    const cursorText = cursor === null ? '' : `; the cursor is at ${cursor}`;
    const result = { v: 1, target: target.name, place: address, file, day, rows, cursor, days_changed };
    return { result, lines: [`${rowsText} in ${address}${cursorText}.`] };
  },
});

async function loadDay(
  sink: Sink,
  { file, day }: { readonly file: string; readonly day: Day },
  config: PlanConfig,
  { clock, signal }: Context,
): Promise<RunOutcome> {
  const suppression = readFilterForPlace(config, sink.state?.suppressionLength);
  const { exportState, receipts = new Map() } = sink.state?.events ?? {};
  const dayFile = { file, day, settings: config, state: exportState, receipts, suppression };
  const { rowsWritten, daysChanged } = await loadDayFromFile(dayFile, { clock, signal }, (checkedDay, commitInfo) =>
    sink.commit([checkedDay], commitInfo),
  );
  const next_from_date = sink.state?.events.exportState?.from_date ?? null;
  return { summary: { ...EMPTY_SUMMARY, rows: rowsWritten, days: 1, days_changed: daysChanged, next_from_date } };
}
