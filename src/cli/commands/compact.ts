import { EXIT } from '../../base/errors.ts';
import { count, megabytes } from '../../base/quantities.ts';
import type { StatefulTarget } from '../../sinks/target.ts';
import { command, optionsForPlace, placeOptions, printResult } from '../command.ts';

/** `compact TARGET PLACE`. */
export const compactIn = (target: StatefulTarget) =>
  command({
    options: optionsForPlace(target),
    async run({ place, ...values }, context) {
      const upkeep = await target.upkeep();
      const { rows, bytesBefore, bytesAfter } = await upkeep.compact(place, placeOptions(values, context));
      const size = `${megabytes(bytesBefore)} before, ${megabytes(bytesAfter)} now`;
      const result = { v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter };
      printResult(result, [`${place}: ${count(rows, 'row')}, ${size}.`], values.json, context);
      return EXIT.done;
    },
  });
