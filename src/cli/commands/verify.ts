import { EXIT } from '../../base/errors.ts';
import type { Target } from '../../sinks/target.ts';
import { type Command, flag } from '../command.ts';
import { placeArgument, placeOf, placeOptions, supported } from '../maintenance.ts';

/** `verify TARGET PLACE`: prints what differs, or that nothing does. */
export function verifyIn(target: Target): Command {
  return {
    options: placeArgument(target),
    async run(options, context) {
      const { terminal } = context;
      const place = placeOf(target, options);
      const found = await supported(target.verify?.(place, placeOptions(options, context)));
      if (flag(options, 'json')) terminal.result(JSON.stringify({ v: 1, target: place, differences: found }));
      else if (found.length === 0) terminal.result(`${place} agrees with its receipts.`);
      else for (const { check, message } of found) terminal.result(`${check}: ${message}`);
      return found.length === 0 ? EXIT.done : EXIT.failed;
    },
  };
}
