import type { Command } from '../command.ts';
import { maintenanceOptions } from '../maintenance.ts';

export const models: Command = {
  usage: 'models duckdb <file>',
  summary: 'Ready views and a macro over the events, in the schema analytics of a DuckDB file',
  options: (yargs) => maintenanceOptions(yargs.positional('file', { type: 'string', demandOption: true })),
  handler: async () => (await import('../handlers/models.ts')).models,
};
