import { EXIT } from '../../base/errors.ts';
import { MODELS } from '../../targets/duckdb/models/models.ts';
import { duckdb } from '../../targets/duckdb/target.ts';
import { defineCommand, PLACE_OPTIONS, placeArguments, printResult } from '../command.ts';
import { tableLines } from '../table.ts';

export const command = defineCommand({
  options: {
    ...placeArguments([duckdb]),
    lockWait: PLACE_OPTIONS.lockWait,
  },
  examples: ['models duckdb events.duckdb', 'models duckdb events.duckdb --json'],
  page: 'models.md',
  async run({ place: file, lockWait, json }, context) {
    const { clock, signal, terminal } = context;
    const { writeModels } = await import('../../targets/duckdb/models/write.ts');
    const names = await writeModels({ file, lockWaitMs: lockWait, clock, signal });
    const rows = MODELS.map(({ grain, parameters }, i) => [
      parameters === undefined ? names[i] : `${names[i]}(${parameters.join(', ')})`,
      grain,
    ]);
    const lines = tableLines(['model', 'what one row is'], rows, {
      cell: 100,
      line: terminal.columns,
    });
    printResult({ v: 1, target: file, models: names }, lines, json, context);
    return EXIT.done;
  },
});
