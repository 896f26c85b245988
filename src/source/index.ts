import type { Connector } from '../airbyte/connector.ts';
import type { WorkerOptions } from '../sinks/records/workers/worker-pool.ts';

/** The Airbyte source; each verb is loaded when it is called. */
export function sourceConnector(threads: WorkerOptions): Connector {
  return {
    name: 'source-dfinery',
    spec: async () => (await import('./spec.ts')).specVerb,
    check: async () => (await import('./check.ts')).checkVerb,
    discover: async () => (await import('./discover.ts')).discoverVerb,
    read: async () => (await import('./read.ts')).readVerb(threads),
  };
}
