import { EXIT } from '../../base/errors.ts';
import { MODELS } from '../../targets/duckdb/models/models.ts';
import { argument, command, PLACE_OPTIONS, printResult, required, text } from '../command.ts';
import { tableLines } from '../table.ts';

export const commands = [
  command({
    usage: 'models duckdb <file>',
    summary: 'Ready views and a macro over the events, in the schema analytics of a DuckDB file',
    options: {
      file: argument('file', required(text('The DuckDB file'))),
      lockWait: PLACE_OPTIONS.lockWait,
      json: PLACE_OPTIONS.json,
    },
    async run({ file, lockWait, json }, context) {
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
  }),
];
