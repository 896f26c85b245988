// This folder: the Airbyte source. `check.ts`, `discover.ts` and `read.ts` are its verbs. `read.ts` reads the profiles,
// then the days; meanwhile `heartbeat.ts` gives signs of life. What is known of a stream has these names:
//
//   AirbyteStream      what `discover` offers: its name, its schema, its modes
//   ConfiguredStream   what the user chose of that, in the catalog
//   StreamPlan         the days to read, decided by `stream-plans.ts` from its saved state
//   StreamProgress     it while it is read: the `RunResults` of its days, and its state after them
//   StreamOutput       what the platform is told of it
//   StreamSchemas      the properties of its records; `StreamStats`: what was written of them

import schema from '../../../schemas/source-config.json' with { type: 'json' };
import type { Connector, Verb } from '../protocol/connector.ts';
import { specMessage } from '../protocol/messages.ts';

const spec: Verb = async () => specMessage('source-dfinery', schema);

export const source: Connector = {
  spec: { requiredFiles: [], load: async () => spec },
  check: { requiredFiles: ['config'], load: async () => (await import('./check.ts')).check },
  discover: { requiredFiles: ['config'], load: async () => (await import('./discover.ts')).discover },
  read: { requiredFiles: ['config', 'catalog'], load: async () => (await import('./read.ts')).read },
};
