import { configError, EXIT } from '../../base/errors.ts';
import { startSimulator } from '../../simulator/index.ts';
import { parseScenario } from '../../simulator/scenario.ts';
import { type Command, text } from '../command.ts';
import { readJsonFile } from '../context.ts';

/** What the embedded service accepts; no secrets: they open nothing but a simulation. */
export const SIMULATED = {
  serviceId: 'demo-service',
  tokens: { export: 'demo-export-token', import: 'demo-import-token' },
  seed: 'dfinery-elt',
} as const;

const DEFAULT_PORT = '8585';

export const simulate: Command = {
  options: (yargs) =>
    yargs
      .option('port', { type: 'string', default: DEFAULT_PORT, describe: 'Port on 127.0.0.1; 0 takes a free one' })
      .option('scenario', { type: 'string', describe: 'JSON file with data, unknowns and faults (docs/simulator.md)' })
      .option('rows-per-day', { type: 'string', describe: 'Events a day, about' }),
  async run(options, { clock, logger, signal, terminal }) {
    const file = text(options, 'scenario');
    const scenario = file === undefined ? undefined : parseScenario(readJsonFile(file, 'the scenario'));
    const rows = numberOption('rows-per-day', text(options, 'rowsPerDay'));
    const simulator = await startSimulator({
      ...SIMULATED,
      clock,
      port: numberOption('port', text(options, 'port')) ?? 0,
      ...(scenario && { scenario }),
      ...(rows !== undefined && { rowsPerDay: rows }),
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
};

function numberOption(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!/^\d{1,9}$/.test(value)) throw configError(`--${name} is ${JSON.stringify(value)}, wanted a whole number.`);
  return Number(value);
}
