// This folder: the Airbyte protocol, which both connectors share. `connector-process.ts` is the life of a process,
// `entrypoint.ts` runs one verb in it. `command-line.ts` and `catalog-and-states.ts` parse what the platform passes.
// `messages.ts` has what `writer.ts` writes to stdout.

import type { Runtime } from '../../base/runtime.ts';
import type { Redactor } from '../../base/secrets.ts';
import type { ConfiguredCatalog, SavedStates } from './catalog-and-states.ts';
import type { ConnectorSpecification, Message } from './messages.ts';
import type { MessageWriter } from './writer.ts';

export type Verb = 'spec' | 'check' | 'discover' | 'read' | 'write';

export interface VerbContext extends Runtime {
  /** Aborted by SIGTERM and SIGINT, by a closed stdout and by an unforeseen error anywhere. */
  readonly signal: AbortSignal;
  readonly writer: MessageWriter;
  /** Masks secrets; each secret is added as soon as it is known. */
  readonly redactor: Redactor;
}

/** Returns a sentence. A config or transient UserError is an answer, too (FAILED, exit 0); any other error a defect. */
export type CheckVerb = (rawConfig: unknown, context: VerbContext) => Promise<string>;
export type DiscoverVerb = (rawConfig: unknown, context: VerbContext) => Promise<Message>;
export type ReadVerb = (
  rawConfig: unknown,
  catalog: ConfiguredCatalog,
  state: SavedStates,
  context: VerbContext,
) => Promise<void>;
export type WriteVerb = (
  rawConfig: unknown,
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
