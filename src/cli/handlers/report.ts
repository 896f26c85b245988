import { secretFrom } from '../../base/env.ts';
import { configFailure, EXIT } from '../../base/errors.ts';
import { megabytes } from '../../base/quantities.ts';
import { Secret } from '../../base/secrets.ts';
import { countLedger } from '../../deletion/ledger/counts.ts';
import type { Target } from '../../sinks/target.ts';
import { flag, type Handler, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import { placeOptions } from '../maintenance.ts';
import type { ReportedDeletions } from '../report/deletions.ts';
import { writeReport } from '../report/write-report.ts';

/** `report TARGET PLACE -o FILE`, for a target that can be reported on. */
export const reportOn =
  (target: Required<Pick<Target, 'name' | 'place' | 'report'>>): Handler =>
  async (options, context) => {
    const place = text(options, target.place.name) ?? '';
    const output = text(options, 'output') ?? '';
    const historyDays = daysOption(options.historyDays);
    const deletions = await deletionsOf(options, context);
    const found = await target.report(place, placeOptions(options, context));
    const request = { target: `${target.name} ${place}`, output, historyDays, deletions };
    const size = megabytes(await writeReport(found, request, context));
    if (flag(options, 'json')) context.terminal.result(JSON.stringify({ v: 1, target: place, output }));
    else context.terminal.result(`The report is in ${output} (${size}).`);
    return EXIT.done;
  };

const MOST_HISTORY_DAYS = 3_650;

function daysOption(value: unknown): number {
  const days = Number(value);
  if (Number.isInteger(days) && days >= 1 && days <= MOST_HISTORY_DAYS) return days;
  throw configFailure(`--history-days is ${String(value)}, wanted a number of days from 1 to ${MOST_HISTORY_DAYS}.`);
}

async function deletionsOf(options: Options, { env, redactor }: Context): Promise<ReportedDeletions | undefined> {
  const folder = text(options, 'ledgerDir');
  if (folder === undefined) return undefined;
  const key = secretFrom(env, 'DFINERY_LEDGER_KEY');
  const secret = key === undefined ? undefined : new Secret(key);
  redactor.add(secret);
  return countLedger(folder, secret);
}
