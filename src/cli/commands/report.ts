import { configError, EXIT } from '../../base/errors.ts';
import { megabytes } from '../../base/quantities.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import { countLedger } from '../../deletion/ledger/verify.ts';
import { replaceFile } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import type { TargetReport } from '../../sinks/report.ts';
import type { StatefulTarget } from '../../sinks/target.ts';
import { type Command, type Options, placeArgument, placeOf, placeOptions, printResult, text } from '../command.ts';
import { type Context, secretOf } from '../context.ts';
import { type PageOptions, type ReportedDeletions, reportPage } from '../report/page.ts';

const MAX_HISTORY_DAYS = 3_650;

/** `report TARGET PLACE -o FILE`. */
export function reportOn(target: StatefulTarget): Command {
  return {
    options: (yargs) =>
      placeArgument(target)(yargs)
        .option('output', { alias: 'o', type: 'string', demandOption: true, describe: 'The page, one file of HTML' })
        .option('ledger-dir', { type: 'string', describe: 'A ledger of deletions, to be counted too' })
        .option('history-days', {
          type: 'number',
          default: DEFAULT_HISTORY_DAYS,
          describe: 'How many days back the service exports',
        }),
    async run(options, context) {
      const place = placeOf(target, options);
      const output = text(options, 'output') ?? '';
      const historyDays = daysOption(options.historyDays);
      const deletions = await deletionsOf(options, context);
      const found = await (await target.upkeep()).report(place, placeOptions(options, context));
      const request = { target: `${target.name} ${place}`, output, historyDays, deletions };
      const size = megabytes(await writeReport(found, request, context));
      printResult({ v: 1, target: place, output }, [`The report is in ${output} (${size}).`], options, context);
      return EXIT.done;
    },
  };
}

function daysOption(value: unknown): number {
  const days = Number(value);
  if (Number.isInteger(days) && days >= 1 && days <= MAX_HISTORY_DAYS) return days;
  throw configError(`--history-days is ${String(value)}, wanted a number of days from 1 to ${MAX_HISTORY_DAYS}.`);
}

async function deletionsOf(options: Options, context: Context): Promise<ReportedDeletions | undefined> {
  const folder = text(options, 'ledgerDir');
  return folder === undefined ? undefined : countLedger(folder, secretOf('DFINERY_LEDGER_KEY', context));
}

/** The page holds counts alone, and those who read it may be other users. */
const PAGE_PERMISSIONS = 0o644;

/** Path of the page, and what is on it. */
export interface ReportRequest extends Omit<PageOptions, 'now'> {
  readonly output: string;
}

/** Writes the page of a target; returns its bytes. Throws a UserError where it cannot be written. */
export async function writeReport(found: TargetReport, request: ReportRequest, { clock }: Context): Promise<number> {
  const page = reportPage(found, { ...request, now: clock.now() });
  try {
    await replaceFile(request.output, page, PAGE_PERMISSIONS);
  } catch (error) {
    throw diskError(error, { what: `the report ${request.output}`, path: request.output });
  }
  return Buffer.byteLength(page);
}
