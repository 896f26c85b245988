import { EXIT } from '../../base/errors.ts';
import { MODELS } from '../../sinks/duckdb/models/index.ts';
import { writeModels } from '../../sinks/duckdb/models/store.ts';
import { type Command, flag, text } from '../command.ts';
import { lockWait, maintenanceOptions } from '../maintenance.ts';
import { tableLines } from '../table.ts';

export const models: Command = {
  options: (yargs) => maintenanceOptions(yargs.positional('file', { type: 'string', demandOption: true })),
  async run(options, { clock, signal, terminal }) {
    const file = text(options, 'file') ?? '';
    const names = await writeModels({ file, lockWaitMs: lockWait(options), clock, signal });
    if (flag(options, 'json')) terminal.result(JSON.stringify({ v: 1, target: file, models: names }));
    else {
      const rows = MODELS.map(({ grain, parameters }, i) => [
        parameters === undefined ? names[i] : `${names[i]}(${parameters.join(', ')})`,
        grain,
      ]);
      for (const line of tableLines(['model', 'what one row is'], rows, 100)) terminal.result(line);
    }
    return EXIT.done;
  },
};
