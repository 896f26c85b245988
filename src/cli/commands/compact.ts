import { EXIT } from '../../base/errors.ts';
import { count, megabytes } from '../../base/quantities.ts';
import type { Target } from '../../sinks/target.ts';
import { type Command, flag } from '../command.ts';
import { placeArgument, placeOf, placeOptions, supported } from '../maintenance.ts';

/** `compact TARGET PLACE`. */
export function compactIn(target: Target): Command {
  return {
    options: placeArgument(target),
    async run(options, context) {
      const place = placeOf(target, options);
      const done = await supported(target.compact?.(place, placeOptions(options, context)));
      const { rows, bytesBefore, bytesAfter } = done;
      if (flag(options, 'json'))
        context.terminal.result(JSON.stringify({ v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter }));
      else {
        const size = `${megabytes(bytesBefore)} before, ${megabytes(bytesAfter)} now`;
        context.terminal.result(`${place}: ${count(rows, 'row')}, ${size}.`);
      }
      return EXIT.done;
    },
  };
}
