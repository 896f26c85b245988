// This folder: the Airbyte protocol, which both connectors share. `connector-process.ts` is the life of a process, in
// which `run-connector.ts` runs one verb. `catalog-and-states.ts` parses what the platform passes. `messages.ts` has
// what `message-writer.ts` writes to stdout.

import type { Env } from '../../base/env.ts';
import type { Runtime } from '../../base/runtime.ts';
import type { Redactor } from '../../base/secrets.ts';
import type { ParsedConfig } from '../../config/parse.ts';
import type { ConfiguredStream, SavedStates } from './catalog-and-states.ts';
import type { MessageWriter } from './message-writer.ts';
import type { Message } from './messages.ts';

/** What a verb gets of the process, and of the platform. */
export interface VerbContext extends Runtime {
  /** Aborted by SIGTERM and SIGINT, by a closed stdout and by an unforeseen error anywhere. */
  readonly signal: AbortSignal;
  readonly writer: MessageWriter;
  /** Masks secrets; each secret is added as soon as it is known. */
  readonly redactor: Redactor;
  /** The content of the configuration file; `readConfig` checks it. */
  readonly rawConfig: unknown;
  /** The configured catalog; empty for a verb without one. */
  readonly catalog: readonly ConfiguredStream[];
  readonly states: SavedStates;
  /** The bytes of stdin. */
  readonly input: AsyncIterable<Uint8Array>;
}

/**
 * Does the work of a verb, and returns its answer, if it has one. An error ends the run. For `check`, a config or
 * transient UserError is an answer instead (FAILED, exit 0).
 */
export type Verb = (context: VerbContext) => Promise<Message | undefined>;

/** The verbs of a connector by their names. Each is loaded only when it is called, so that `spec` starts at once. */
export type Connector = Readonly<
  Record<string, { readonly requiredFiles: readonly ('config' | 'catalog')[]; load(): Promise<Verb> }>
>;

/** Parses the configuration of a verb: masks its secrets from here on, and warns of unknown keys. */
export function readConfig<C>(parse: (value: unknown, env: Env) => ParsedConfig<C>, context: VerbContext): C {
  const { config, secrets, unknownKeyTexts } = parse(context.rawConfig, context.env);
  for (const secret of secrets) context.redactor.add(secret);
  if (unknownKeyTexts.length > 0) {
    const message = `The configuration has keys that mean nothing here: ${unknownKeyTexts.join(', ')}.`;
    context.logger.warn('config.unknown_keys', message);
  }
  return config;
}
