import { HOUR_MS } from '../../base/durations.ts';
import { configError, EXIT } from '../../base/errors.ts';
import { formatBytes } from '../../base/quantities.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import { countLedger } from '../../erasure/ledger/verify.ts';
import { removeTemporaries, writeNamedFile } from '../../fs/atomic-file.ts';
import { realPath } from '../../fs/local-path.ts';
import {
  defineCommand,
  placeOptions,
  printResult,
  required,
  STORED_PLACE,
  text,
  whole,
  withDefault,
} from '../command.ts';
import { secretOf } from '../context.ts';
import { reportPage } from '../report/page.ts';

const OPTIONS = {
  output: { ...required(text('The page, one file of HTML; - for stdout')), short: 'o' },
  ledgerDir: text('A ledger of deletions, to be counted too'),
  historyDays: withDefault(`${DEFAULT_HISTORY_DAYS}`, whole('How many days back the service exports', 1, 3_650)),
};

export const command = defineCommand({
  options: { ...STORED_PLACE, ...OPTIONS },
  examples: ['report duckdb events.duckdb -o report.html', 'report parquet events -o - > report.html'],
  page: 'report.md',
  async run({ target, place, output, ledgerDir, historyDays, ...values }, context) {
    if (output === '-' && values.json) {
      throw configError('--output - and --json would both write to stdout: give a file for the page.');
    }
    const deletions =
      ledgerDir === undefined ? undefined : await countLedger(ledgerDir, secretOf('DFINERY_LEDGER_KEY', context));
    const found = await (await target.maintenance()).report(place, placeOptions(values, context));
    const options = { target: `${target.name} ${place}`, now: context.clock.now(), historyDays, deletions };
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
