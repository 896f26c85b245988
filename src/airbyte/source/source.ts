// This folder: the Airbyte source. `read.ts` opens the service, and reads the profiles, then the days.
// `stream-plans.ts` decides the days of a stream from its saved state. `event-stream.ts` is a stream while it is read,
// `stream-output.ts` tells the platform of it.

import schema from '../../../schemas/source-config.json' with { type: 'json' };
import type { Connector } from '../protocol/connector.ts';
import { specMessage } from '../protocol/messages.ts';

/** The Airbyte source. */
export const source: Connector = {
  spec: { files: [], load: async () => async () => specMessage('source-dfinery', schema) },
  check: { files: ['config'], load: async () => (await import('./check.ts')).check },
  discover: { files: ['config'], load: async () => (await import('./discover.ts')).discover },
  read: { files: ['config', 'catalog'], load: async () => (await import('./read.ts')).read },
};
