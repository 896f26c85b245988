import { EXIT } from '../../base/errors.ts';
import { MODELS } from '../../sinks/duckdb/models/models.ts';
import { writeModels } from '../../sinks/duckdb/models/store.ts';
import { type Command, lockWait, maintenanceOptions, printResult, text } from '../command.ts';
import { tableLines } from '../table.ts';

export const models: Command = {
  options: (yargs) => maintenanceOptions(yargs.positional('file', { type: 'string', demandOption: true })),
  async run(options, context) {
    const { clock, signal } = context;
    const file = text(options, 'file') ?? '';
    const names = await writeModels({ file, lockWaitMs: lockWait(options), clock, signal });
    const rows = MODELS.map(({ grain, parameters }, i) => [
      parameters === undefined ? names[i] : `${names[i]}(${parameters.join(', ')})`,
      grain,
    ]);
    const lines = tableLines(['model', 'what one row is'], rows, 100);
    printResult({ v: 1, target: file, models: names }, lines, options, context);
    return EXIT.done;
  },
};
