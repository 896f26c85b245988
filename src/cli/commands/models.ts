import { duckdb } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import { readPlaceAndConfig } from '../places.ts';

export const command = defineCommand({
  targets: [duckdb],
  examples: ['models duckdb events.duckdb', 'models duckdb events.duckdb --json'],
  docsPage: 'look-at-the-data.md',
  async run(values, context) {
    const { place } = readPlaceAndConfig(values, [duckdb], context);
    const { writeModels } = await import('../../targets/duckdb/models/write-models.ts');
    const models = await writeModels(place);
    const lines = [...models].map(
      ([name, { grain, parameters }]) =>
        `${name}${parameters === undefined ? '' : `(${parameters.join(', ')})`}: ${grain}`,
    );
    return { result: { v: 1, target: place.target.name, place: place.address, models: [...models.keys()] }, lines };
  },
});
