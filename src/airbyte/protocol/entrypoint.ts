import { parseArgs } from 'node:util';
import { type Clock, systemClock } from '../../base/clock.ts';
import { requireTrustedCertificates, systemEnv, TRUST_MESSAGE } from '../../base/env.ts';
import { configError, EXIT, internalError, UserError } from '../../base/errors.ts';
import { isObject } from '../../base/json.ts';
import { createLogger } from '../../base/log.ts';
import { endNow, letHeapGrow, runUntilStopped, Stopped } from '../../base/process.ts';
import { type Runtime, systemRandom } from '../../base/runtime.ts';
import { Redactor, Secret } from '../../base/secrets.ts';
import { readJsonFile } from '../../fs/json-file.ts';
import { parseConfiguredCatalog, parseSavedStates } from './catalog-and-states.ts';
import type { Connector, Verb, VerbContext } from './connector.ts';
import { traceOf } from './messages.ts';
import { ClosedPipe, MessageWriter, openStdout } from './writer.ts';

/** Time (ms) that work may take to close after an error that nobody caught. Its requests get a second less. */
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
  const options = parseArguments(io.words, verbs);
  const { writer, clock, env, random } = io;
  const logger = createLogger(writer.sink, options.isDebug ? 'debug' : 'info', redactor.mask);
  const context: VerbContext = { writer, logger, redactor, clock, env, random, signal };
  if (options.verb === 'spec') return writer.write({ type: 'SPEC', spec: connector.spec });
  if (options.verb === 'check') {
    const connectionStatus = await checked(connector, options.configPath, context);
    return writer.write({ type: 'CONNECTION_STATUS', connectionStatus });
  }
  const config = readConfig(options.configPath, redactor);
  if (options.verb === 'discover' && connector.discover !== undefined) {
    return writer.write(await (await connector.discover())(config, context));
  }
  const catalog = parseConfiguredCatalog(readFile(options.catalogPath, 'The catalog file'));
  if (options.verb === 'write' && connector.write !== undefined) {
    return (await connector.write())(config, catalog, io.input, context);
  }
  if (options.verb === 'read' && connector.read !== undefined) {
    const { statePath } = options;
    const states = parseSavedStates(statePath ? readFile(statePath, 'The state file') : undefined);
    return (await connector.read())(config, catalog, states, context);
  }
  throw internalError(`The verb ${options.verb} has no code.`);
}

/** Platforms write an empty file for an absent value. */
const readFile = (path: string, what: string): unknown => readJsonFile(path, what, { mayBeEmpty: true });

/** The files that each verb needs; the verbs in the order in which messages name them. */
const NEEDS: Readonly<Record<Verb, readonly ('config' | 'catalog')[]>> = {
  spec: [],
  check: ['config'],
  discover: ['config'],
  read: ['config', 'catalog'],
  write: ['config', 'catalog'],
};
const VERBS = Object.keys(NEEDS) as Verb[];

/**
 * Parses a connector's command line, as the platform and PyAirbyte spell it. The path of a file that the verb needs is
 * not empty. Throws a config failure for anything that it does not know.
 */
function parseArguments(words: readonly string[], verbs: readonly Verb[]) {
  const verb = verbs.find((name) => name === words[0]);
  if (verb === undefined) throw configError(`The first word must be a command: wanted one of ${verbs.join(', ')}.`);
  const values = optionsIn(words.slice(1));
  for (const name of NEEDS[verb]) if (!values[name]) throw configError(`${verb} needs --${name} FILE.`);
  const { debug: isDebug = false, config: configPath = '', catalog: catalogPath = '', state: statePath } = values;
  return { verb, isDebug, configPath, catalogPath, statePath };
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

/** Runs `check`; problems of the user or of the network are its answer, not a failure of the connector. */
async function checked(connector: Connector, path: string, context: VerbContext) {
  const { mask } = context.redactor;
  try {
    const message = await (await connector.check())(readConfig(path, context.redactor), context);
    return { status: 'SUCCEEDED', message: mask(message) } as const;
  } catch (error) {
    if (context.signal.aborted || !(error instanceof UserError) || error.kind === 'system') throw error;
    return { status: 'FAILED', message: mask(error.platformMessage) } as const;
  }
}

/** Masks whatever looks like a secret, before the configuration has been understood. */
function readConfig(path: string, redactor: Redactor): unknown {
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
    io.writer.sink({ level: 'warn', event: 'run.stopped', message: `Stopped by ${error.signal} before the end.` });
    return;
  }
  await io.writer.write(traceOf(error, io.clock.now(), redactor.mask)).catch(() => {});
}

/** Runs the whole process of a connector; the `main.ts` of each connector calls only this. */
export async function runConnectorProcess(connector: Connector): Promise<void> {
  let code = 1;
  letHeapGrow();
  const writer = new MessageWriter(openStdout(systemClock));
  logNodeWarnings(writer);
  if (requireTrustedCertificates()) writer.sink({ level: 'warn', event: 'tls.strict', message: TRUST_MESSAGE });
  await runUntilStopped(async (signal) => {
    code = await runConnector(connector, {
      words: process.argv.slice(2),
      writer,
      input: { [Symbol.asyncIterator]: () => stdinUntil(signal) },
      clock: systemClock,
      env: systemEnv,
      random: systemRandom,
      signal,
      onUncaught,
    });
    if (!signal.aborted) endNow(code);
  }, systemClock);
}

/** Reads stdin, which is opened only when somebody reads it; an abort ends the wait for more. */
function stdinUntil(signal: AbortSignal): AsyncIterator<Uint8Array> {
  signal.addEventListener('abort', () => process.stdin.destroy());
  return process.stdin[Symbol.asyncIterator]();
}

/** Logs Node's warnings, which it would print on stderr, where a platform takes them for errors. */
function logNodeWarnings(writer: MessageWriter): void {
  process.removeAllListeners('warning');
  process.on('warning', ({ name, message }) => {
    writer.sink({ level: 'debug', event: 'node.warning', message: `${name}: ${message}` });
  });
}

function onUncaught(listener: (error: unknown) => void): () => void {
  process.on('uncaughtException', listener);
  process.on('unhandledRejection', listener);
  return () => {
    process.off('uncaughtException', listener);
    process.off('unhandledRejection', listener);
  };
}
