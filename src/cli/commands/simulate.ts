import { codeOf, configError, EXIT } from '../../base/errors.ts';
import { readJsonFile } from '../../fs/json-file.ts';
import { startSimulator } from '../../simulator/index.ts';
import { parseScenario } from '../../simulator/scenario.ts';
import { defineCommand, text, whole, withDefault } from '../command.ts';

/** The tokens that the embedded service accepts. They are no secrets: they open nothing but a simulation. */
export const SIMULATED = {
  serviceId: 'demo-service',
  tokens: { export: 'demo-export-token', import: 'demo-import-token' },
  seed: 'dfinery-elt',
} as const;

export const command = defineCommand({
  options: {
    port: withDefault('8585', whole('Port on 127.0.0.1; 0 takes a free one', 0, 65_535)),
    scenario: text('JSON file with data, unknowns and faults (docs/simulator.md)'),
    rowsPerDay: whole('Events a day, about'),
  },
  examples: ['simulate', 'simulate --port 0 --scenario scenario.json'],
  page: 'simulator.md',
  async run({ port, scenario: file, rowsPerDay }, { clock, logger, signal, terminal }) {
    const scenario = file === undefined ? undefined : parseScenario(readJsonFile(file, 'the scenario'));
    const started = startSimulator({ ...SIMULATED, clock, port, scenario, rowsPerDay });
    const simulator = await started.catch((error: unknown) => {
      throw codeOf(error) === undefined
        ? error
        : configError(`--port ${port} cannot be used (${codeOf(error)}): give another, or 0 for a free one.`, {
            cause: error,
          });
    });
    try {
      const { serviceId, tokens } = SIMULATED;
      terminal.result(JSON.stringify({ base_url: simulator.url, service_id: serviceId, export_token: tokens.export }));
      logger.info(
        'simulate.ready',
        `listening on ${simulator.url}; the line on stdout is a source configuration for it.`,
      );
      logger.info('simulate.tokens', `Export token ${tokens.export}, Import token ${tokens.import}; stop with Ctrl-C.`);
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    } finally {
      await simulator.close();
    }
    return EXIT.done;
  },
});
