import { onAbort } from '../../base/abort.ts';
import { readJsonFile } from '../../fs/json-file.ts';
import { startSimulator } from '../../simulator/simulator.ts';
import { defineCommand, numberOption, pathOption, withDefault } from '../command.ts';

export const command = defineCommand({
  options: {
    port: withDefault('8585', numberOption('Port on 127.0.0.1; 0 takes a free one', 0, 65_535)),
    scenario: pathOption('JSON file with what the service does (docs/simulator.md)'),
  },
  examples: ['simulate', 'simulate --port 0 --scenario scenario.json'],
  docsPage: 'simulator.md',
  async run({ port, scenario: file }, { clock, logger, signal, terminal }) {
    const scenario = file === undefined ? {} : readJsonFile(file, 'the scenario');
    const simulator = await startSimulator({ scenario, clock, port });
    try {
      const { url } = simulator;
      const { service_id, export_token, import_token } = simulator.scenario;
      terminal.print(JSON.stringify({ base_url: url, service_id, export_token }));
      logger.info('simulate.ready', `listening on ${url}; the line on stdout is a source configuration for it.`);
      logger.info('simulate.tokens', `Export token ${export_token}, Import token ${import_token}; stop with Ctrl-C.`);
      await new Promise<void>((resolve) => onAbort(signal, resolve));
    } finally {
      await simulator.close();
    }
    return { result: { v: 1 }, lines: [] };
  },
});
