import { EXIT } from '../../base/errors.ts';
import { megabytes } from '../../base/quantities.ts';
import { DEFAULT_HISTORY_DAYS } from '../../config/source.ts';
import { countLedger } from '../../deletion/ledger/counts.ts';
import { writeNamedFile } from '../../fs/atomic-file.ts';
import type { TargetReport } from '../../sinks/target.ts';
import { STATEFUL_TARGETS } from '../../sinks/targets.ts';
import { command, optionsForPlace, placeOptions, printResult, required, text, whole, withDefault } from '../command.ts';
import { type Context, secretOf } from '../context.ts';
import { type PageOptions, reportPage } from '../report/page.ts';

const OPTIONS = {
  output: { ...required(text('The page, one file of HTML')), short: '-o' },
  ledgerDir: text('A ledger of deletions, to be counted too'),
  historyDays: withDefault(`${DEFAULT_HISTORY_DAYS}`, whole('How many days back the service exports', 1, 3_650)),
};

/** `report TARGET PLACE -o FILE`. */
export const commands = STATEFUL_TARGETS.map((target) =>
  command({
    usage: `report ${target.name} <${target.place.name}>`,
    family: 'A page about a target',
    summary: `One page about ${target.noun}: days, events, columns, runs`,
    options: { ...optionsForPlace(target), ...OPTIONS },
    async run({ place, output, ledgerDir, historyDays, ...values }, context) {
      const deletions =
        ledgerDir === undefined ? undefined : await countLedger(ledgerDir, secretOf('DFINERY_LEDGER_KEY', context));
      const found = await (await target.upkeep()).report(place, placeOptions(values, context));
      const request = { target: `${target.name} ${place}`, output, historyDays, deletions };
      const size = megabytes(await writeReport(found, request, context));
      printResult({ v: 1, target: place, output }, [`The report is in ${output} (${size}).`], values.json, context);
      return EXIT.done;
    },
  }),
);

/** Path of the page, and what is on it. */
export interface ReportRequest extends Omit<PageOptions, 'now'> {
  readonly output: string;
}

/** Writes the page of a target; returns its bytes. Throws a UserError where it cannot be written. */
export async function writeReport(found: TargetReport, request: ReportRequest, { clock }: Context): Promise<number> {
  const page = reportPage(found, { ...request, now: clock.now() });
  writeNamedFile(request.output, page, `the report ${request.output}`);
  return Buffer.byteLength(page);
}
