import { EXIT } from '../../base/errors.ts';
import type { StatefulTarget } from '../../targets/contract.ts';
import { STATEFUL_TARGETS } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import { Configuration } from '../configuration.ts';
import { type NamedPlace, placeArguments, placeOf } from '../place-arguments.ts';
import { during } from '../run/progress.ts';

export const command = defineCommand({
  options: placeArguments(STATEFUL_TARGETS),
  examples: ['verify duckdb events.duckdb', 'verify delta s3://bucket/events --json'],
  page: 'operations.md',
  async run(values, context) {
    const configuration = new Configuration(values.config, context);
    const named = placeOf('verify', values, STATEFUL_TARGETS, configuration);
    const { place } = named;
    const result = await during(`Verifying ${place}`, verificationOf(named, configuration), context);
    const { differences, warnings } = result;
    for (const warning of warnings) context.logger.warn('verify.warning', warning);
    const isSame = differences.length === 0;
    const lines = differences.map(({ check, message }) => `${check}: ${message}`);
    const shown = isSame ? [`${place} agrees with its receipts.`] : lines;
    return { result, lines: shown, exit: isSame ? EXIT.done : EXIT.failed };
  },
});

/** Compares what a place holds with its receipts. */
export async function verificationOf({ target, place }: NamedPlace<StatefulTarget>, configuration: Configuration) {
  const maintenance = await target.maintenance();
  const { differences, warnings } = await maintenance.verify(place, configuration.placeOptions());
  return { v: 1, target: target.name, place, differences, warnings };
}
