// This folder: the Airbyte protocol, which both connectors share. `entrypoint.ts` is the command line and the life of a
// process, `catalog-and-states.ts` the files that it gets. `messages.ts` has what `writer.ts` writes to stdout.

import type { Runtime } from '../../base/runtime.ts';
import type { Redactor, Secret } from '../../base/secrets.ts';
import type { ConfiguredCatalog, SavedStates } from './catalog-and-states.ts';
import type { ConnectorSpecification, Message } from './messages.ts';
import type { MessageWriter } from './writer.ts';

export type Verb = 'spec' | 'check' | 'discover' | 'read' | 'write';

/** The signal is aborted by SIGTERM and SIGINT, by a closed stdout and by an unforeseen error anywhere. */
export interface VerbContext extends Runtime {
  readonly writer: MessageWriter;
  /** Masks secrets; each secret is added as soon as it is known. */
  readonly redactor: Redactor;
}

interface ParsedConfig<C> {
  readonly config: C;
  readonly secrets: readonly Secret[];
  readonly unknown: readonly string[];
}

/** Opens the configuration of a verb: masks its secrets from here on, and warns of unknown keys. */
export function openConfig<C>({ config, secrets, unknown }: ParsedConfig<C>, { redactor, logger }: VerbContext): C {
  for (const secret of secrets) redactor.add(secret);
  if (unknown.length > 0) {
    logger.warn('config.unknown_keys', `The configuration has keys that mean nothing here: ${unknown.join(', ')}.`);
  }
  return config;
}

/** Returns a sentence. A config or transient UserError is an answer, too (FAILED, exit 0); any other error a defect. */
export type CheckVerb = (config: unknown, context: VerbContext) => Promise<string>;
export type DiscoverVerb = (config: unknown, context: VerbContext) => Promise<Message>;
export type ReadVerb = (
  config: unknown,
  catalog: ConfiguredCatalog,
  state: SavedStates,
  context: VerbContext,
) => Promise<void>;
export type WriteVerb = (
  config: unknown,
  catalog: ConfiguredCatalog,
  input: AsyncIterable<Uint8Array>,
  context: VerbContext,
) => Promise<void>;

/** A connector: its verbs, each loaded only when it is called, so that `spec` starts at once. */
export interface Connector {
  readonly spec: ConnectorSpecification;
  readonly check: () => Promise<CheckVerb>;
  readonly discover?: () => Promise<DiscoverVerb>;
  readonly read?: () => Promise<ReadVerb>;
  readonly write?: () => Promise<WriteVerb>;
}
