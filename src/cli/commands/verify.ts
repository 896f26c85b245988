import { EXIT } from '../../base/errors.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import { Configuration } from '../configuration.ts';
import { placeArguments, placeOf } from '../place-arguments.ts';
import { during } from '../run/progress.ts';

export const command = defineCommand({
  options: placeArguments(STATEFUL_TARGETS),
  examples: ['verify duckdb events.duckdb', 'verify delta s3://bucket/events --json'],
  page: 'operations.md',
  async run(values, context) {
    const configuration = new Configuration(values.config, context);
    const { target, place } = placeOf('verify', values, STATEFUL_TARGETS, configuration);
    const maintenance = await target.maintenance();
    const work = maintenance.verify(place, configuration.placeOptions());
    const { differences, warnings } = await during(`Verifying ${place}`, work, context);
    for (const warning of warnings) context.logger.warn('verify.warning', warning);
    const isSame = differences.length === 0;
    const lines = differences.map(({ check, message }) => `${check}: ${message}`);
    const shown = isSame ? [`${place} agrees with its receipts.`] : lines;
    const result = { v: 1, target: place, differences, warnings };
    return { result, lines: shown, exit: isSame ? EXIT.done : EXIT.failed };
  },
});
