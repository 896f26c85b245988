import type { Secret } from '../../base/secrets.ts';
import { headerText } from '../http/token.ts';
import { type Post, scopedPath } from '../http/transport.ts';

/** Whom one deletion names, and when it was asked for (ms since 1970). */
export interface DeletionRequest {
  readonly externalId: string;
  readonly at: number;
}

/** An id that JSON cannot carry unchanged would name somebody else at the service; an empty one names nobody. */
export const isSendable = (id: string): boolean => id !== '' && Buffer.from(id).toString() === id;

/** The request exactly as specified. */
export function deletionPost({ externalId, at }: DeletionRequest, serviceId: string, token: Secret): Post {
  return {
    path: scopedPath('/api/v1/identities/delete', serviceId),
    headers: {
      'Content-Type': 'application/json',
      access_token: headerText(token, 'import_token'),
      'User-Agent': 'dfinery-elt',
    },
    body: JSON.stringify({
      identity: { external_id: externalId },
      request_datetime: new Date(at).toISOString(),
    }),
  };
}
