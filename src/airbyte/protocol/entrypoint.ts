import type { Clock } from '../../base/clock.ts';
import { EXIT, systemError, UserError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { createLogger } from '../../base/log.ts';
import { Stopped } from '../../base/process.ts';
import type { Runtime } from '../../base/runtime.ts';
import { Redactor, Secret } from '../../base/secrets.ts';
import { readJsonFile } from '../../fs/json-file.ts';
import { parseConfiguredCatalog, parseSavedStates } from './catalog-and-states.ts';
import { parseArguments, VERBS } from './command-line.ts';
import type { Connector, VerbContext } from './connector.ts';
import { errorTrace } from './messages.ts';
import { ClosedPipe, type MessageWriter } from './writer.ts';

/**
 * Time (ms) that work may take to close after an error that nobody caught, or after stdout was closed. The deletions
 * in `erasure/requests.ts` get less.
 */
const CLOSING_MS = 4_000;

export interface ConnectorIo extends Omit<Runtime, 'logger'> {
  readonly words: readonly string[];
  readonly writer: MessageWriter;
  readonly input: AsyncIterable<Uint8Array>;
  /** Calls back with errors that nobody caught; returns a function that stops listening. */
  readonly onUncaught: (listener: (error: unknown) => void) => () => void;
}

/**
 * Runs one verb and returns the exit code. Failures are reported as the protocol requires, and all output is flushed.
 */
export async function runConnector(connector: Connector, io: ConnectorIo): Promise<number> {
  const redactor = new Redactor();
  const controller = new AbortController();
  const signal = AbortSignal.any([io.signal, controller.signal]);
  const stopListening = io.onUncaught((error) => controller.abort(error));
  io.writer.onClosed((error) => controller.abort(error));
  let code: number = EXIT.done;
  try {
    await untilAborted(controller.signal, io.clock, runVerb(connector, io, redactor, signal));
    signal.throwIfAborted();
  } catch (error) {
    code = EXIT.failed;
    await report(signal.aborted ? signal.reason : error, io, redactor);
  } finally {
    stopListening();
  }
  return io.writer.drain().then(
    () => code,
    () => EXIT.failed,
  );
}

async function runVerb(connector: Connector, io: ConnectorIo, redactor: Redactor, signal: AbortSignal): Promise<void> {
  const verbs = VERBS.filter((verb) => connector[verb] !== undefined);
  const { verb, isDebug, configPath, catalogPath, statePath } = parseArguments(io.words, verbs);
  const { writer, clock, env, random } = io;
  const logger = createLogger(writer.writeLog, isDebug ? 'debug' : 'info', redactor.mask);
  const context: VerbContext = { writer, logger, redactor, clock, env, random, signal };
  const readConfig = () => readAndMaskConfig(configPath, redactor);
  const readCatalog = () => parseConfiguredCatalog(readFile(catalogPath, 'The catalog file'));
  const readStates = () => parseSavedStates(statePath ? readFile(statePath, 'The state file') : undefined);
  switch (verb) {
    case 'spec':
      return writer.write({ type: 'SPEC', spec: connector.spec });
    case 'check':
      return writer.write({
        type: 'CONNECTION_STATUS',
        connectionStatus: await connectionStatusOf(connector, readConfig, context),
      });
    case 'discover':
      return writer.write(await (await load(connector.discover))(readConfig(), context));
    case 'read':
      return (await load(connector.read))(readConfig(), readCatalog(), readStates(), context);
    case 'write':
      return (await load(connector.write))(readConfig(), readCatalog(), io.input, context);
  }
}

/** Loads a verb. The command line lets only those pass that the connector has. */
function load<V>(verb: (() => Promise<V>) | undefined): Promise<V> {
  if (verb === undefined) throw systemError('The connector does not have this verb.');
  return verb();
}

/** Platforms write an empty file for an absent value. */
const readFile = (path: string, what: string): unknown => readJsonFile(path, what, { mayBeEmpty: true });

/** Runs `check`; problems of the user or of the network are its answer, not a failure of the connector. */
async function connectionStatusOf(connector: Connector, readConfig: () => unknown, context: VerbContext) {
  const { mask } = context.redactor;
  try {
    const message = await (await load(connector.check))(readConfig(), context);
    return { status: 'SUCCEEDED', message: mask(message) } as const;
  } catch (error) {
    if (context.signal.aborted || !(error instanceof UserError) || error.kind === 'system') throw error;
    return { status: 'FAILED', message: mask(error.platformMessage) } as const;
  }
}

/** Reads the configuration. Masks whatever looks like a secret, before the keys have been understood. */
function readAndMaskConfig(path: string, redactor: Redactor): unknown {
  const config = readFile(path, 'The configuration file');
  for (const [key, value] of Object.entries(isObject(config) ? config : {})) {
    if (/token|secret|password|_key$/i.test(key) && typeof value === 'string') redactor.add(new Secret(value));
  }
  return config;
}

/** Ends as the work does. After an abort the work has a moment to close what it opened; then it is given up. */
async function untilAborted(signal: AbortSignal, clock: Clock, work: Promise<void>): Promise<void> {
  const givenUp = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => void clock.sleep(CLOSING_MS).then(() => reject(signal.reason)));
  });
  await Promise.race([work, givenUp]);
}

async function report(error: unknown, io: ConnectorIo, redactor: Redactor): Promise<void> {
  if (error instanceof ClosedPipe) return;
  if (error instanceof Stopped) {
    io.writer.writeLog({ level: 'warn', event: 'run.stopped', message: `Stopped by ${error.signal} before the end.` });
    return;
  }
  await io.writer.write(errorTrace(error, io.clock.now(), redactor.mask)).catch(() => {});
}
