import type { Command } from '../command.ts';
import { SOURCE_FILE } from '../configuration.ts';

export const init: Command = {
  usage: 'init',
  summary: 'Asks for address, service and token, tries them, and writes dfinery.json without the token',
  options: (yargs) =>
    yargs
      .option('config', { type: 'string', default: SOURCE_FILE, describe: 'The file to write' })
      .option('base-url', { type: 'string', describe: 'Address of the Open API; else DFINERY_BASE_URL, else asked' })
      .option('service-id', { type: 'string', describe: 'The service; else DFINERY_SERVICE_ID, else asked' })
      .option('yes', { type: 'boolean', default: false, describe: 'Ask nothing: options and environment are enough' })
      .option('overwrite', { type: 'boolean', default: false, describe: 'With --yes: replace a file that is there' }),
  handler: async () => (await import('../handlers/init.ts')).init,
};
