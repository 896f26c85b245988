import { EXIT, type ExitCode } from '../../base/errors.ts';
import type { Target } from '../../sinks/target.ts';
import type { Difference } from '../../table/differences.ts';
import { flag, type Handler, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import { placeOptions } from '../maintenance.ts';

/** `verify TARGET PLACE`, for a target that can. */
export const verifyIn =
  (target: Required<Pick<Target, 'place' | 'verify'>>): Handler =>
  async (options, context) => {
    const place = text(options, target.place.name) ?? '';
    return print(await target.verify(place, placeOptions(options, context)), place, options, context);
  };

/** Prints what differs, or that nothing does. */
function print(found: readonly Difference[], place: string, options: Options, { terminal }: Context): ExitCode {
  if (flag(options, 'json')) terminal.result(JSON.stringify({ v: 1, target: place, differences: found }));
  else if (found.length === 0) terminal.result(`${place} agrees with its receipts.`);
  else for (const { check, message } of found) terminal.result(`${check}: ${message}`);
  return found.length === 0 ? EXIT.done : EXIT.failed;
}
