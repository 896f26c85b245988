import { configFailure, EXIT } from '../../base/errors.ts';
import { startSimulator } from '../../simulator/index.ts';
import { parseScenario } from '../../simulator/parse-scenario.ts';
import { type Handler, text } from '../command.ts';
import { readJsonFile } from '../context.ts';

/** What the embedded service accepts; not secrets, they open nothing but a simulation. */
export const SIMULATED = {
  serviceId: 'demo-service',
  tokens: { export: 'demo-export-token', import: 'demo-import-token' },
  seed: 'dfinery-elt',
} as const;

export const simulate: Handler = async (options, context) => {
  const file = text(options, 'scenario');
  const scenario = file === undefined ? undefined : parseScenario(readJsonFile(file, 'the scenario'));
  const rows = numberOption('rows-per-day', text(options, 'rowsPerDay'));
  const simulator = await startSimulator({
    ...SIMULATED,
    clock: context.clock,
    port: numberOption('port', text(options, 'port')) ?? 0,
    ...(scenario && { scenario }),
    ...(rows !== undefined && { rowsPerDay: rows }),
  });
  try {
    const config = {
      base_url: simulator.url,
      service_id: SIMULATED.serviceId,
      export_token: SIMULATED.tokens.export,
    };
    context.terminal.result(JSON.stringify(config));
    context.logger.info(
      'simulate.ready',
      `listening on ${simulator.url}; the line on stdout is a source configuration for it.`,
    );
    context.logger.info(
      'simulate.tokens',
      `Export token ${SIMULATED.tokens.export}, Import token ${SIMULATED.tokens.import}; stop with Ctrl-C.`,
    );
    await new Promise<void>((resolve) => context.signal.addEventListener('abort', () => resolve(), { once: true }));
  } finally {
    await simulator.close();
  }
  return EXIT.done;
};

function numberOption(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!/^\d{1,9}$/.test(value)) throw configFailure(`--${name} is ${JSON.stringify(value)}, wanted a whole number.`);
  return Number(value);
}
