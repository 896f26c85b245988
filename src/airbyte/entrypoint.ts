import type { Clock } from '../base/clock.ts';
import type { Env } from '../base/env.ts';
import { EXIT, Failure } from '../base/errors.ts';
import { createLogger } from '../base/log.ts';
import type { Random } from '../base/random.ts';
import { Redactor, Secret } from '../base/secrets.ts';
import { Stopped } from '../base/signals.ts';
import { type Arguments, parseArguments } from './argv.ts';
import { parseConfiguredCatalog } from './configured-catalog.ts';
import { type Connector, type VerbContext, verbsOf } from './connector.ts';
import { isObject, readJsonInput } from './json.ts';
import { failed, type Message } from './messages.ts';
import { parseStateInput } from './state-input.ts';
import { traceOf } from './trace.ts';
import { isClosedPipe, type MessageWriter } from './writer.ts';

/** What work may still take to close after an error that nobody caught; a second more than what it gives its requests. */
const CLOSING_MS = 4_000;

/** What the process provides to a connector. */
export interface ConnectorIo {
  readonly words: readonly string[];
  readonly writer: MessageWriter;
  readonly input: AsyncIterable<Uint8Array>;
  readonly clock: Clock;
  readonly env: Env;
  readonly random: Random;
  /** Aborted when the process is asked to stop. */
  readonly signal: AbortSignal;
  /** Calls back with errors that nobody caught; returns how to stop listening. */
  readonly onUncaught: (listener: (error: unknown) => void) => () => void;
}

/**
 * Runs one verb of a connector and returns the exit code. Failures are reported as the protocol requires; all output is
 * flushed when it returns. A run stopped by a signal logs that.
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
    await tell(signal.aborted ? signal.reason : error, io, redactor);
  } finally {
    stopListening();
  }
  return (await drained(io.writer)) ? code : EXIT.failed;
}

async function runVerb(connector: Connector, io: ConnectorIo, redactor: Redactor, signal: AbortSignal): Promise<void> {
  const given = parseArguments(io.words, verbsOf(connector));
  const { writer, clock, env, random } = io;
  const logger = createLogger(writer.sink, given.isDebug ? 'debug' : 'info', redactor.mask);
  const context: VerbContext = { writer, logger, redactor, clock, env, random, signal };
  await dispatch(connector, given, io, context);
}

async function dispatch(connector: Connector, given: Arguments, io: ConnectorIo, context: VerbContext): Promise<void> {
  const { writer } = context;
  if (given.verb === 'spec') return writer.write(await (await connector.spec())(context));
  if (given.verb === 'check') return writer.write(await checked(connector, given, context));
  const config = configOf(given, context.redactor);
  if (given.verb === 'discover') return writer.write(await (await connector.discover())(config, context));
  const catalog = parseConfiguredCatalog(readJsonInput(given.catalog ?? '', 'catalog'));
  if (given.verb === 'write') return (await connector.write?.())?.(config, catalog, io.input, context);
  const state = parseStateInput(given.state ? readJsonInput(given.state, 'state') : undefined);
  return (await connector.read?.())?.(config, catalog, state, context);
}

/** Problems of the user or of the network are an answer, not a failure of ours. */
async function checked(connector: Connector, given: Arguments, context: VerbContext): Promise<Message> {
  try {
    return await (await connector.check())(configOf(given, context.redactor), context);
  } catch (error) {
    if (context.signal.aborted || !(error instanceof Failure) || error.kind === 'system') throw error;
    return failed(context.redactor.mask(error.message));
  }
}

function configOf(given: Arguments, redactor: Redactor): unknown {
  const config = readJsonInput(given.config ?? '', 'configuration');
  maskLikelySecrets(config, redactor);
  return config;
}

/** Before the configuration has been understood, whatever looks like a secret in it is one. */
function maskLikelySecrets(config: unknown, redactor: Redactor): void {
  if (!isObject(config)) return;
  for (const [key, value] of Object.entries(config)) {
    if (/token|secret|password|_key$/i.test(key) && typeof value === 'string') redactor.add(new Secret(value));
  }
}

/** The work's own end; after an abort the work has a moment to close what it opened, then it is given up. */
async function untilAborted(signal: AbortSignal, clock: Clock, work: Promise<void>): Promise<void> {
  let listener: (() => void) | undefined;
  const givenUp = new Promise<never>((_, reject) => {
    listener = () => void clock.sleep(CLOSING_MS).then(() => reject(signal.reason));
    signal.addEventListener('abort', listener);
  });
  try {
    await Promise.race([work, givenUp]);
  } finally {
    if (listener) signal.removeEventListener('abort', listener);
    work.catch(() => {});
  }
}

async function tell(error: unknown, io: ConnectorIo, redactor: Redactor): Promise<void> {
  if (isClosedPipe(error)) return;
  if (error instanceof Stopped) {
    io.writer.sink({ level: 'warn', event: 'run.stopped', message: `Stopped by ${error.signal} before the end.` });
    return;
  }
  await io.writer.write(traceOf(error, io.clock.now(), redactor.mask)).catch(() => {});
}

async function drained(writer: MessageWriter): Promise<boolean> {
  try {
    await writer.drain();
    return true;
  } catch {
    return false;
  }
}
