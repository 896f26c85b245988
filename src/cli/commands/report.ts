import { HOUR_MS } from '../../base/durations.ts';
import { configError, EXIT } from '../../base/errors.ts';
import { formatBytes } from '../../base/quantities.ts';
import { removeTemporaries, writeNamedFile } from '../../fs/atomic-file.ts';
import { realPath } from '../../fs/local-path.ts';
import { defineCommand, printResult, required, STORED_PLACE, text } from '../command.ts';
import { loadOfflineConfig, placeOptions } from '../configuration.ts';
import { reportPage } from '../report/page.ts';
import { during } from '../run/progress.ts';

const OPTIONS = {
  output: { ...required(text('The page, one file of HTML; - for stdout')), short: 'o' },
};

export const command = defineCommand({
  options: { ...STORED_PLACE, ...OPTIONS },
  examples: ['report duckdb events.duckdb -o report.html', 'report parquet events -o - > report.html'],
  page: 'look-at-the-data.md',
  async run({ target, place, output, ...values }, context) {
    if (output === '-' && values.json) {
      throw configError('--output - and --json would both write to stdout: give a file for the page.');
    }
    const { historyDays } = loadOfflineConfig(values.config, context);
    const maintenance = await target.maintenance();
    const work = maintenance.report(place, placeOptions(values, context));
    const found = await during(`Reading ${place}`, work, context);
    const options = { target: `${target.name} ${place}`, now: context.clock.now(), historyDays };
    const page = reportPage(found, options);
    if (output === '-') {
      for (const line of page.trimEnd().split('\n')) context.terminal.result(line);
      return EXIT.done;
    }
    writeNamedFile(output, page, `the report ${output}`);
    // What killed reports left has the names of events, too.
    await removeTemporaries(realPath(output), context.clock.now(), HOUR_MS);
    const size = formatBytes(Buffer.byteLength(page));
    printResult({ v: 1, target: place, output }, [`The report is in ${output} (${size}).`], values.json, context);
    return EXIT.done;
  },
});
