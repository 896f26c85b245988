import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import type { Target } from '../../sinks/target.ts';
import type { Command } from '../command.ts';
import { maintenanceOptions } from '../maintenance.ts';

/** `report TARGET PLACE -o FILE`, for a target that can be reported on. */
export function reportCommands({ name, place, summaries, report }: Target): Command[] {
  const summary = summaries.report;
  if (report === undefined || summary === undefined) return [];
  return [
    {
      usage: `report ${name} <${place.name}>`,
      summary,
      options: (yargs) =>
        maintenanceOptions(yargs.positional(place.name, { type: 'string', demandOption: true }))
          .option('output', { alias: 'o', type: 'string', demandOption: true, describe: 'The page, one file of HTML' })
          .option('ledger-dir', { type: 'string', describe: 'A ledger of deletions, to be counted too' })
          .option('history-days', {
            type: 'number',
            default: DEFAULT_HISTORY_DAYS,
            describe: 'How many days back the service exports',
          }),
      handler: async () => (await import('../handlers/report.ts')).reportOn({ name, place, report }),
    },
  ];
}
