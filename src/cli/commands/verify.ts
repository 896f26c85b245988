import { EXIT } from '../../base/errors.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { command, optionsForPlace, placeOptions, printResult } from '../command.ts';

export const commands = STATEFUL_TARGETS.map((target) =>
  command({
    usage: `verify ${target.name} <${target.place.name}>`,
    family: 'A target against its receipts',
    summary: `The rows of ${target.label} against the receipts of what was loaded; exit 1 where they differ`,
    options: optionsForPlace(target),
    async run({ place, ...values }, context) {
      const differences = await (await target.maintenance()).verify(place, placeOptions(values, context));
      const isSame = differences.length === 0;
      const lines = differences.map(({ check, message }) => `${check}: ${message}`);
      const shown = isSame ? [`${place} agrees with its receipts.`] : lines;
      printResult({ v: 1, target: place, differences }, shown, values.json, context);
      return isSame ? EXIT.done : EXIT.failed;
    },
  }),
);
