import { EXIT, type ExitCode } from '../../base/errors.ts';
import type { Difference } from '../../sinks/differences.ts';
import type { Target } from '../../sinks/target.ts';
import { type Command, flag, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import { maintenanceOptions, placeOptions } from './maintenance.ts';

/** `verify TARGET PLACE`, for a target that can be verified. */
export function verifyCommands(target: Target): Command[] {
  const { verify } = target;
  const summary = target.summaries.verify;
  const { name } = target.place;
  if (verify === undefined || summary === undefined) return [];
  return [
    {
      usage: `verify ${target.name} <${name}>`,
      summary,
      options: (yargs) => maintenanceOptions(yargs.positional(name, { type: 'string', demandOption: true })),
      async run(options, context) {
        const place = text(options, name) ?? '';
        return tell(await verify(place, placeOptions(options, context)), place, options, context);
      },
    },
  ];
}

/** Prints what differs, or that nothing does. */
function tell(found: readonly Difference[], place: string, options: Options, { terminal }: Context): ExitCode {
  if (flag(options, 'json')) terminal.result(JSON.stringify({ v: 1, target: place, differences: found }));
  else if (found.length === 0) terminal.result(`${place} agrees with its receipts.`);
  else for (const { check, message } of found) terminal.result(`${check}: ${message}`);
  return found.length === 0 ? EXIT.done : EXIT.defect;
}
