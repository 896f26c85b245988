import { EXIT } from '../../base/errors.ts';
import { count, formatBytes } from '../../base/quantities.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { command, optionsForPlace, placeOptions, printResult } from '../command.ts';

export const commands = STATEFUL_TARGETS.map((target) =>
  command({
    usage: `compact ${target.name} <${target.place.name}>`,
    family: 'A target written anew',
    summary: target.summaries.compact,
    options: optionsForPlace(target),
    async run({ place, ...values }, context) {
      const maintenance = await target.maintenance();
      const { rows, bytesBefore, bytesAfter } = await maintenance.compact(place, placeOptions(values, context));
      const size = `${formatBytes(bytesBefore)} before, ${formatBytes(bytesAfter)} now`;
      const result = { v: 1, rows, bytes_before: bytesBefore, bytes_after: bytesAfter };
      printResult(result, [`${place}: ${count(rows, 'row')}, ${size}.`], values.json, context);
      return EXIT.done;
    },
  }),
);
