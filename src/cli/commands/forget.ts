import { configFailure } from '../../base/errors.ts';
import { type Command, type Options, shownOption, text } from '../command.ts';
import { destinationEnvironmentHelp } from '../environment-help.ts';
import { printLedgerVerdict, printProof } from '../forget/ledger.ts';
import { forgetPeople } from '../forget/people.ts';
import { purgePlaces } from '../forget/places.ts';
import { maintenanceOptions } from '../maintenance.ts';

export const forget: Command = {
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
  async run(options, context) {
    refuseEmpty(options);
    const ledger = text(options, 'verifyLedger');
    if (ledger !== undefined) return printLedgerVerdict(ledger, options, context);
    const proof = text(options, 'proof');
    if (proof !== undefined) return printProof(proof, options, context);
    return forgetPeople(options, context);
  },
};

/** An empty variable of a script must not quietly leave out a check, a list or a purge. */
function refuseEmpty(options: Options): void {
  for (const [name, value] of Object.entries(options)) {
    if (name.includes('-') || (Array.isArray(value) ? !value.includes('') : value !== '')) continue;
    throw configFailure(`${shownOption(name)} is empty.`);
  }
}
