import { EXIT } from '../../base/errors.ts';
import type { StatefulTarget } from '../../sinks/target.ts';
import { type Command, placeArgument, placeOf, placeOptions, printResult } from '../command.ts';

/** `verify TARGET PLACE`: prints what differs, or that nothing does. */
export function verifyIn(target: StatefulTarget): Command {
  return {
    options: placeArgument(target),
    async run(options, context) {
      const place = placeOf(target, options);
      const differences = await (await target.upkeep()).verify(place, placeOptions(options, context));
      const isSame = differences.length === 0;
      const lines = differences.map(({ check, message }) => `${check}: ${message}`);
      const shown = isSame ? [`${place} agrees with its receipts.`] : lines;
      printResult({ v: 1, target: place, differences }, shown, options, context);
      return isSame ? EXIT.done : EXIT.failed;
    },
  };
}
