import { TARGETS } from '../../targets/targets.ts';
import { DAY_OPTIONS, defineCommand } from '../command.ts';
import { readPlaceAndConfig } from '../places.ts';
import { planSync } from '../run/sync-plan.ts';

export const command = defineCommand({
  targets: TARGETS,
  options: DAY_OPTIONS,
  examples: ['plan duckdb events.duckdb', 'plan delta events --from 2026-01-01 --to 2026-01-31'],
  docsPage: 'days-and-types.md',
  async run(values, context) {
    const { config, place } = readPlaceAndConfig(values, TARGETS, context);
    return await planSync({ place, config, daySelection: values }, context);
  },
});
