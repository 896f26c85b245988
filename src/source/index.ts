// This folder: the Airbyte source, one verb a file, each loaded when it is called. `streams/` plans and reports the
// configured streams.

import type { Connector } from '../airbyte/connector.ts';
import type { WorkerOptions } from '../sinks/records/worker-pool.ts';

/**
 * The Airbyte source. `read` plans each stream (`streams/plan.ts`), cuts the plans into segments of days that the same
 * streams want, and writes records and states.
 */
export function sourceConnector(threads: WorkerOptions): Connector {
  return {
    name: 'source-dfinery',
    spec: async () => (await import('./spec.ts')).specVerb,
    check: async () => (await import('./check.ts')).checkVerb,
    discover: async () => (await import('./discover.ts')).discoverVerb,
    read: async () => (await import('./read.ts')).readVerb(threads),
  };
}
