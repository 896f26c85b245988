import { isStdout, TARGETS } from '../../targets/targets.ts';
import { DAY_OPTIONS, defineCommand, durationOption, flagOption, pathOption } from '../command.ts';
import { logFailure } from '../failure.ts';
import { readPlaceAndConfig } from '../places.ts';
import { notify } from '../run/notify.ts';
import { runSync } from '../run/run.ts';
import { describeSummary } from '../run/summary.ts';
import { planSync } from '../run/sync-plan.ts';

export const command = defineCommand({
  targets: TARGETS,
  options: {
    ...DAY_OPTIONS,
    schema: pathOption('Pinned schema, as discover prints it'),
    maxWait: durationOption('Longest wait for the quota (30s, 20m, 1h); longer: commit the days before, exit 3'),
    dryRun: flagOption('Show the plan; nothing is sent or stored'),
  },
  examples: ['sync duckdb events.duckdb', 'sync parquet events --from 2026-01-01 --to 2026-01-31'],
  docsPage: 'targets.md',
  async run(values, context) {
    const { config, place } = readPlaceAndConfig(values, TARGETS, context);
    const input = { place, config, daySelection: values, maxWaitMs: values.maxWait, schemaFile: values.schema };
    if (values.dryRun) return await planSync(input, context);
    const { summary, failure } = await runSync(input, context);
    const hasStored = summary.days > 0 || summary.profiles !== null;
    if (failure === undefined || hasStored) context.logger.info('run.summary', describeSummary(summary, place));
    // The receiver of a notification may hang, and the process may be killed meanwhile.
    if (failure !== undefined) logFailure(failure, context.logger);
    await notify(summary, input, context);
    return { result: summary, lines: [], exitCode: summary.exit, isStdoutTaken: isStdout(place) };
  },
});
