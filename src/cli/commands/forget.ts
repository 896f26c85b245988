import type { Command } from '../command.ts';
import { destinationEnvironmentHelp } from '../environment-help.ts';
import { purgePlaces } from '../forget/places.ts';
import { maintenanceOptions } from '../maintenance.ts';

export const forget: Command = {
  usage: 'forget',
  summary: 'Deletes profiles at the service, after a plan that is confirmed by its hash; proves what was deleted',
  options: (yargs) =>
    maintenanceOptions(yargs)
      .option('id', { type: 'string', describe: 'An external ID' })
      .option('file', { type: 'string', describe: 'CSV, JSON Lines, or one ID a line; - for standard input' })
      .option('column', { type: 'string', describe: 'Name of the column with the external IDs' })
      .option('query', {
        type: 'string',
        describe: 'SQL that gives one column of external IDs, put read-only to --duckdb',
      })
      .option('duckdb', { type: 'string', describe: 'The file for --query' })
      .option('config', {
        type: 'string',
        describe: 'Destination configuration (JSON); default dfinery-destination.json',
      })
      .option('execute', { type: 'boolean', default: false, describe: 'Delete; needs --confirm' })
      .option('confirm', { type: 'string', describe: 'The hash that the plan of exactly this list printed' })
      .option('purge', { type: 'string', nargs: 2, describe: `${purgePlaces()}: the people leave it too` })
      .option('purge-column', { type: 'string', describe: 'Column there that holds the external ID' })
      .option('mapping', { type: 'string', describe: 'File with the columns external_id and df_unified_id' })
      .option('suppression-file', {
        type: 'string',
        describe: 'List that keeps the people out of later syncs; key in DFINERY_SUPPRESSION_KEY',
      })
      .option('verify-ledger', { type: 'string', describe: 'A ledger file or folder: finds any edit' })
      .option('head', {
        type: 'string',
        describe: 'Hash of the last line, as a run printed it: shows whether lines are missing at the end, too',
      })
      .option('proof', { type: 'string', describe: 'An external ID: when and with what answer it was erased' })
      .option('ledger-dir', { type: 'string', describe: 'The ledger for --proof' })
      .epilogue(destinationEnvironmentHelp()),
  handler: async () => (await import('../handlers/forget.ts')).forget,
};
