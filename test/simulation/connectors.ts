import { Readable, type Writable } from 'node:stream';
import { destination } from '../../src/airbyte/destination/connector.ts';
import type { Connector } from '../../src/airbyte/protocol/connector.ts';
import { runConnector } from '../../src/airbyte/protocol/entrypoint.ts';
import { MessageWriter } from '../../src/airbyte/protocol/writer.ts';
import { sourceConnector } from '../../src/airbyte/source/index.ts';
import type { Clock } from '../../src/base/clock.ts';

/** A verb of a connector with its files, as a platform starts it. */
export interface Verb {
  readonly connector: 'source' | 'destination';
  readonly words: readonly string[];
  /** Lines for its input. */
  readonly input: readonly string[];
  readonly output: () => Writable;
  /** Called when it has ended, without a code when it was killed; gives the code that a command line would have had. */
  readonly ended: (code: number | undefined) => number | undefined;
}

const CONNECTORS: Readonly<Record<Verb['connector'], Connector>> = {
  source: sourceConnector({ entry: undefined }),
  destination,
};

/** Loads what verbs load when they are run. */
export async function loadConnectors(): Promise<void> {
  await CONNECTORS.source.read?.();
  await CONNECTORS.destination.write?.();
}

interface Io {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly env: (name: string) => string | undefined;
}

/** Runs it as its image does; gives its exit code. */
export function runVerb({ connector, words, input, output }: Verb, io: Io): Promise<number> {
  return runConnector(CONNECTORS[connector], {
    ...io,
    words,
    writer: new MessageWriter(output()),
    input: Readable.from(input.map((line) => Buffer.from(`${line}\n`))),
    random: Math.random,
    onUncaught: () => () => {},
  });
}
