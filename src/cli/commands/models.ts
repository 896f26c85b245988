import { MODELS } from '../../targets/duckdb/models/models.ts';
import { duckdb } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import { placeAndConfig, placeArguments } from '../places.ts';

export const command = defineCommand({
  options: placeArguments([duckdb]),
  examples: ['models duckdb events.duckdb', 'models duckdb events.duckdb --json'],
  docsPage: 'look-at-the-data.md',
  async run(values, context) {
    const { place } = placeAndConfig(values, [duckdb], context);
    const { writeModels } = await import('../../targets/duckdb/models/analytics.ts');
    const names = await writeModels(place);
    const lines = MODELS.map(({ grain, parameters }, i) =>
      [names[i], parameters === undefined ? '' : `(${parameters.join(', ')})`, ': ', grain].join(''),
    );
    return { result: { v: 1, target: place.target.name, place: place.address, models: names }, lines };
  },
});
