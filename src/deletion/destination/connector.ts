// This folder: the Airbyte destination, one verb a file.

import type { Connector } from '../../airbyte/connector.ts';

/** The Airbyte destination. Each verb is loaded when it is called. */
export const destination: Connector = {
  name: 'destination-dfinery',
  spec: async () => (await import('./spec.ts')).spec,
  check: async () => (await import('./check.ts')).check,
  discover: async () => (await import('./catalog.ts')).discover,
  write: async () => (await import('./write.ts')).write,
};
