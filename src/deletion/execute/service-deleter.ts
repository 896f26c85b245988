import type { Clock } from '../../base/clock.ts';
import type { Env } from '../../base/env.ts';
import type { Logger } from '../../base/log.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { createDeletionService } from '../../service/delete/client.ts';
import type { Deleter } from './deleter.ts';

/** The service itself, under the configuration's token. `close` lets go of its connections. */
export function deleterFor(
  config: DestinationConfig,
  { clock, logger, env }: { readonly clock: Clock; readonly logger: Logger; readonly env: Env },
): Deleter & { close(): Promise<void> } {
  const { baseUrl, serviceId, importToken, maxConcurrentRequests } = config;
  return createDeletionService({ baseUrl, serviceId, importToken, maxConcurrentRequests, clock, logger, env });
}
