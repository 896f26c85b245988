import { EXIT, type ExitCode } from '../../base/errors.ts';
import { count, megabytes } from '../../base/quantities.ts';
import type { Rewritten, Target } from '../../sinks/target.ts';
import { flag, type Handler, type Options, text } from '../command.ts';
import type { Context } from '../context.ts';
import { placeOptions } from '../maintenance.ts';

/** `compact TARGET PLACE`, for a target that can. */
export const compactIn =
  (target: Required<Pick<Target, 'place' | 'compact'>>): Handler =>
  async (options, context) => {
    const place = text(options, target.place.name) ?? '';
    return print(await target.compact(place, placeOptions(options, context)), place, options, context);
  };

function print(done: Rewritten, place: string, options: Options, { terminal }: Context): ExitCode {
  const { rows, bytesBefore, bytesAfter } = done;
  const size = `${megabytes(bytesBefore)} before, ${megabytes(bytesAfter)} now`;
  if (flag(options, 'json'))
    terminal.result(JSON.stringify({ v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter }));
  else terminal.result(`${place}: ${count(rows, 'row')}, ${size}.`);
  return EXIT.done;
}
