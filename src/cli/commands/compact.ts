import { EXIT, type ExitCode } from '../../base/errors.ts';
import type { Rewritten, Target } from '../../sinks/target.ts';
import { type Command, flag, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import { megabytes } from '../text.ts';
import { maintenanceOptions, placeOptions } from './maintenance.ts';

/** `compact TARGET PLACE`, for a target that can be compacted. */
export function compactCommands(target: Target): Command[] {
  const { compact } = target;
  const summary = target.summaries.compact;
  const { name } = target.place;
  if (compact === undefined || summary === undefined) return [];
  return [
    {
      usage: `compact ${target.name} <${name}>`,
      summary,
      options: (yargs) => maintenanceOptions(yargs.positional(name, { type: 'string', demandOption: true })),
      async run(options, context) {
        const place = text(options, name) ?? '';
        return tell(await compact(place, placeOptions(options, context)), place, options, context);
      },
    },
  ];
}

function tell(done: Rewritten, place: string, options: Options, { terminal }: Context): ExitCode {
  const { rows, bytesBefore, bytesAfter } = done;
  const size = `${megabytes(bytesBefore)} before, ${megabytes(bytesAfter)} now`;
  if (flag(options, 'json'))
    terminal.result(JSON.stringify({ v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter }));
  else terminal.result(`${place}: ${rows.toLocaleString('en-US')} rows, ${size}.`);
  return EXIT.done;
}
