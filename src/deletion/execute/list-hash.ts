import { createHash } from 'node:crypto';
import type { ServiceName } from '../ledger/store.ts';

/** A hash (64 hex digits) of exactly the ids that a stage accepted (`digest`) and of the service that is to delete them. */
export const listHash = (digest: string, { baseUrl, serviceId }: ServiceName): string =>
  createHash('sha256')
    .update(JSON.stringify(['dfinery-elt forget v2', baseUrl, serviceId, digest]))
    .digest('hex');
