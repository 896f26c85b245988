import { formatBytes } from '../../base/quantities.ts';
import type { Place, StatefulTarget } from '../../targets/contract.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { defineCommand, pathOption, required } from '../command.ts';
import type { CommandConfig } from '../configuration.ts';
import { readPlaceAndConfig } from '../places.ts';
import { writePage } from '../report/page.ts';
import { reportPage } from '../report/report-page.ts';
import { withElapsedTime } from '../terminal/progress.ts';

export const command = defineCommand({
  targets: STATEFUL_TARGETS,
  options: {
    output: { ...required(pathOption('The page, one file of HTML; - for stdout')), short: 'o' },
  },
  examples: ['report duckdb events.duckdb -o report.html', 'report parquet events -o report.html --json'],
  docsPage: 'look-at-the-data.md',
  async run(values, context) {
    const { config, place } = readPlaceAndConfig(values, STATEFUL_TARGETS, context);
    const { output } = values;
    const page = await withElapsedTime(`Reading ${place.address}`, makeReportPage(place, config), context);
    await writePage(page, output, 'the report', context.terminal);
    const result = { v: 1, target: place.target.name, place: place.address, output };
    const size = formatBytes(Buffer.byteLength(page));
    return { result, lines: output === '-' ? [] : [`The report is in ${output} (${size}).`] };
  },
});

export async function makeReportPage(place: Place<StatefulTarget>, config: CommandConfig): Promise<string> {
  const { target, address, clock } = place;
  const { historyDays, endDate } = config;
  const report = await (await target.maintenance(place)).report();
  return reportPage(report, { placeName: `${target.name} ${address}`, now: clock.now(), historyDays, endDate });
}
