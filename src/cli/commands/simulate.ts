import { codeOf, configError, EXIT } from '../../base/errors.ts';
import { readJsonFile } from '../../fs/json-file.ts';
import { startSimulator } from '../../simulator/index.ts';
import { parseScenario } from '../../simulator/scenario.ts';
import { type Command, text } from '../command.ts';

/** What the embedded service accepts; no secrets: they open nothing but a simulation. */
export const SIMULATED = {
  serviceId: 'demo-service',
  tokens: { export: 'demo-export-token', import: 'demo-import-token' },
  seed: 'dfinery-elt',
} as const;

const DEFAULT_PORT = '8585';
const MAX_PORT = 65_535;
const MAX_ROWS = 999_999_999;

export const simulate: Command = {
  options: (yargs) =>
    yargs
      .option('port', { type: 'string', default: DEFAULT_PORT, describe: 'Port on 127.0.0.1; 0 takes a free one' })
      .option('scenario', { type: 'string', describe: 'JSON file with data, unknowns and faults (docs/simulator.md)' })
      .option('rows-per-day', { type: 'string', describe: 'Events a day, about' }),
  async run(options, { clock, logger, signal, terminal }) {
    const file = text(options, 'scenario');
    const scenario = file === undefined ? undefined : parseScenario(readJsonFile(file, 'the scenario'));
    const rows = numberOption('rows-per-day', text(options, 'rowsPerDay'), MAX_ROWS);
    const port = numberOption('port', text(options, 'port'), MAX_PORT) ?? 0;
    const started = {
      ...SIMULATED,
      clock,
      port,
      ...(scenario && { scenario }),
      ...(rows !== undefined && { rowsPerDay: rows }),
    };
    const simulator = await startSimulator(started).catch((error: unknown) => {
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
};

function numberOption(name: string, value: string | undefined, max: number): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,9}$/.test(value) && Number(value) <= max) return Number(value);
  throw configError(`--${name} is ${JSON.stringify(value)}, wanted a whole number of ${max} at most.`);
}
