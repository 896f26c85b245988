import manifest from '../../../package.json' with { type: 'json' };
import { dayAt } from '../../base/days.ts';
import { secretFrom } from '../../base/env.ts';
import { configFailure, EXIT, messageOf } from '../../base/errors.ts';
import { Secret } from '../../base/secrets.ts';
import { countLedger } from '../../deletion/ledger/counts.ts';
import { replaceFile } from '../../fs/atomic-file.ts';
import type { Target } from '../../sinks/target.ts';
import { type Command, flag, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import type { ReportedDeletions } from '../report/deletions.ts';
import { reportPage } from '../report/page.ts';
import { megabytes } from '../text.ts';
import { maintenanceOptions, placeOptions } from './maintenance.ts';

const DEFAULT_HISTORY_DAYS = 30;

/** `report TARGET PLACE -o FILE`, for a target that can be reported on. */
export function reportCommands(target: Target): Command[] {
  const { report } = target;
  const summary = target.summaries.report;
  const { name } = target.place;
  if (report === undefined || summary === undefined) return [];
  return [
    {
      usage: `report ${target.name} <${name}>`,
      summary,
      options: (yargs) =>
        maintenanceOptions(yargs.positional(name, { type: 'string', demandOption: true }))
          .option('output', { alias: 'o', type: 'string', demandOption: true, describe: 'The page, one file of HTML' })
          .option('ledger-dir', { type: 'string', describe: 'A ledger of deletions, to be counted too' })
          .option('history-days', {
            type: 'number',
            default: DEFAULT_HISTORY_DAYS,
            describe: 'How many days back the service exports',
          }),
      async run(options, context) {
        const place = text(options, name) ?? '';
        const output = text(options, 'output') ?? '';
        const found = await report(place, placeOptions(options, context));
        const now = context.clock.now();
        const page = await reportPage(found, {
          target: `${target.name} ${place}`,
          madeAt: new Date(now).toISOString(),
          today: dayAt(now),
          historyDays: Number(options.historyDays),
          version: manifest.version,
          deletions: await deletionsOf(options, context),
        });
        await writePage(output, page);
        const size = megabytes(Buffer.byteLength(page));
        if (flag(options, 'json')) context.terminal.result(JSON.stringify({ v: 1, target: place, output }));
        else context.terminal.result(`The report is in ${output} (${size}).`);
        return EXIT.done;
      },
    },
  ];
}

/** The page holds counts alone, and those who read it may be other users. */
const PAGE_PERMISSIONS = 0o644;

async function writePage(path: string, page: string): Promise<void> {
  try {
    await replaceFile(path, page, PAGE_PERMISSIONS);
  } catch (error) {
    throw configFailure(`The report ${path} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
}

async function deletionsOf(options: Options, { env, redactor }: Context): Promise<ReportedDeletions | undefined> {
  const folder = text(options, 'ledgerDir');
  if (folder === undefined) return undefined;
  const key = secretFrom(env, 'DFINERY_LEDGER_KEY');
  const secret = key === undefined ? undefined : new Secret(key);
  redactor.add(secret);
  return countLedger(folder, secret);
}
