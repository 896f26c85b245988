import { EXIT } from '../../base/errors.ts';
import type { StatefulTarget } from '../../sinks/target.ts';
import { command, optionsForPlace, placeOptions, printResult } from '../command.ts';

/** `verify TARGET PLACE`: prints what differs, or that nothing does. */
export const verifyIn = (target: StatefulTarget) =>
  command({
    options: optionsForPlace(target),
    async run({ place, ...values }, context) {
      const differences = await (await target.upkeep()).verify(place, placeOptions(values, context));
      const isSame = differences.length === 0;
      const lines = differences.map(({ check, message }) => `${check}: ${message}`);
      const shown = isSame ? [`${place} agrees with its receipts.`] : lines;
      printResult({ v: 1, target: place, differences }, shown, values.json, context);
      return isSame ? EXIT.done : EXIT.failed;
    },
  });
