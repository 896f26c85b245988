import { TARGETS } from '../../targets/targets.ts';
import { DAY_OPTIONS, defineCommand } from '../command.ts';
import { readConfiguration } from '../configuration.ts';
import { optionalPlaceOf, placeArguments } from '../place-arguments.ts';
import { planSync } from '../run/sync-plan.ts';

export const command = defineCommand({
  options: { ...placeArguments(TARGETS), ...DAY_OPTIONS },
  examples: ['plan duckdb events.duckdb', 'plan --from 2026-01-01 --to 2026-01-31'],
  docsPage: 'days-and-types.md',
  async run(values, context) {
    const config = readConfiguration(values.config, context);
    return await planSync(optionalPlaceOf(values, TARGETS, config), values, config, context);
  },
});
