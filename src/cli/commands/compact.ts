import { EXIT } from '../../base/errors.ts';
import { count, megabytes } from '../../base/quantities.ts';
import type { StatefulTarget } from '../../sinks/target.ts';
import { type Command, placeArgument, placeOf, placeOptions, printResult } from '../command.ts';

/** `compact TARGET PLACE`. */
export function compactIn(target: StatefulTarget): Command {
  return {
    options: placeArgument(target),
    async run(options, context) {
      const place = placeOf(target, options);
      const done = await (await target.upkeep()).compact(place, placeOptions(options, context));
      const { rows, bytesBefore, bytesAfter } = done;
      const size = `${megabytes(bytesBefore)} before, ${megabytes(bytesAfter)} now`;
      const json = { v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter };
      printResult(json, [`${place}: ${count(rows, 'row')}, ${size}.`], options, context);
      return EXIT.done;
    },
  };
}
