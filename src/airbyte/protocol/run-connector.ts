import { parseArgs } from 'node:util';
import { onAbort } from '../../base/abort.ts';
import type { Clock } from '../../base/clock.ts';
import { configError, EXIT, UserError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { createLogger } from '../../base/log.ts';
import { Stopped } from '../../base/process.ts';
import { Redactor, Secret } from '../../base/secrets.ts';
import { readJsonFile } from '../../fs/json-file.ts';
import { parseConfiguredCatalog, parseSavedStates } from './catalog-and-states.ts';
import type { Connector, VerbContext } from './connector.ts';
import { connectionStatusMessage, errorTraceMessage } from './messages.ts';

/** Time (ms) that work may take to close after an abort. The deletions in `erasure/requests.ts` get less. */
const CLOSING_MS = 4_000;

/** The process of a connector, or a test in its place. */
interface ConnectorSystem extends Pick<VerbContext, 'writer' | 'input' | 'clock' | 'env' | 'random' | 'signal'> {
  /** The command line, without the program. */
  readonly args: readonly string[];
}

/** Runs one verb and returns the exit code. Reports failures as the protocol requires, and flushes all output. */
export async function runConnector(connector: Connector, system: ConnectorSystem): Promise<number> {
  const { writer, signal, clock } = system;
  const redactor = new Redactor();
  try {
    await withinClosingTime(runVerb(connector, system, redactor), signal, clock);
    // After an abort a verb may return all the same, and then nobody knows what it left out.
    signal.throwIfAborted();
    await writer.drain();
    return EXIT.done;
  } catch (error) {
    await writeFailure(signal.aborted ? signal.reason : error, system, redactor);
    await writer.drain().catch(() => {});
    return EXIT.failed;
  }
}

async function runVerb(connector: Connector, system: ConnectorSystem, redactor: Redactor): Promise<void> {
  const { args, writer, signal } = system;
  const { mask } = redactor;
  const { verb, options } = parseArguments(args, connector);
  try {
    const run = await connector[verb].load();
    const answer = await run({
      ...system,
      redactor,
      logger: createLogger(writer.writeLog, options.debug ? 'debug' : 'info', mask),
      rawConfig: options.config && readAndMaskConfig(options.config, redactor),
      catalog: options.catalog ? parseConfiguredCatalog(readJson(options.catalog, 'The catalog file')) : [],
      states: parseSavedStates(options.state ? readJson(options.state, 'The state file') : undefined),
    });
    if (answer !== undefined) await writer.write(answer);
  } catch (error) {
    // What the user or the network can mend is an answer of `check`, not a failure of the connector.
    const isAnswer = verb === 'check' && error instanceof UserError && error.kind !== 'system' && !signal.aborted;
    if (!isAnswer) throw error;
    await writer.write(connectionStatusMessage('FAILED', mask(error.platformMessage)));
  }
}

/**
 * Parses a connector's command line, as the platform and PyAirbyte spell it. The path of a file that the verb needs is
 * not empty. Throws a config failure for anything that it does not know.
 */
function parseArguments([verb = '', ...args]: readonly string[], connector: Connector) {
  const verbs = Object.keys(connector);
  if (!verbs.includes(verb)) throw configError(`The first word must be a command: wanted one of ${verbs.join(', ')}.`);
  const options = optionsIn(args);
  for (const name of connector[verb].requiredFiles)
    if (!options[name]) throw configError(`${verb} needs --${name} FILE.`);
  return { verb, options };
}

function optionsIn(args: string[]) {
  const file = { type: 'string' } as const;
  try {
    return parseArgs({ args, options: { config: file, catalog: file, state: file, debug: { type: 'boolean' } } })
      .values;
  } catch {
    // The message of the parser quotes the unknown word, which may be a token.
    throw configError(
      'The command line is not understood: wanted --config FILE, --catalog FILE, --state FILE, and --debug.',
    );
  }
}

/** Platforms write an empty file for an absent value. */
const readJson = (path: string, what: string): unknown => readJsonFile(path, what, { mayBeEmpty: true });

/** Reads the configuration. Masks whatever looks like a secret, before the keys have been understood. */
function readAndMaskConfig(path: string, redactor: Redactor): unknown {
  const config = readJson(path, 'The configuration file');
  for (const [key, value] of Object.entries(isObject(config) ? config : {})) {
    if (/token|secret|password|_key$/i.test(key) && typeof value === 'string') redactor.add(new Secret(value));
  }
  return config;
}

/** Ends as the work does. After an abort the work has a moment to close what it opened; then it is given up. */
async function withinClosingTime(work: Promise<void>, signal: AbortSignal, clock: Clock): Promise<void> {
  const givenUp = new Promise<never>((_, reject) => {
    onAbort(signal, () => void clock.sleep(CLOSING_MS).then(() => reject(signal.reason)));
  });
  await Promise.race([work, givenUp]);
}

async function writeFailure(error: unknown, { writer, clock }: ConnectorSystem, redactor: Redactor): Promise<void> {
  if (error instanceof Stopped) {
    writer.writeLog({ level: 'warn', event: 'run.stopped', message: `Stopped by ${error.signal} before the end.` });
    return;
  }
  // A closed stdout takes no message, not even that of its own failure.
  await writer.write(errorTraceMessage(error, clock.now(), redactor.mask)).catch(() => {});
}
