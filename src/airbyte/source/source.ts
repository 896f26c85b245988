// This folder: the Airbyte source. `check.ts`, `discover.ts` and `read.ts` are its verbs. `read.ts` reads the profiles,
// then the days; meanwhile `heartbeat.ts` gives signs of life. A stream is a `ConfiguredStream` in the catalog.
// `stream-plans.ts` decides its days from its saved state. While it is read, an `EventStream` has its days and its
// cursor, and a `StreamOutput` tells the platform of it.

import schema from '../../../schemas/source-config.json' with { type: 'json' };
import type { Connector, Verb } from '../protocol/connector.ts';
import { specMessage } from '../protocol/messages.ts';

const spec: Verb = async () => specMessage('source-dfinery', schema);

export const source: Connector = {
  spec: { files: [], load: async () => spec },
  check: { files: ['config'], load: async () => (await import('./check.ts')).check },
  discover: { files: ['config'], load: async () => (await import('./discover.ts')).discover },
  read: { files: ['config', 'catalog'], load: async () => (await import('./read.ts')).read },
};
