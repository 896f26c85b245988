import type { Secret } from '../../base/secrets.ts';
import type { Limits } from '../export/protocol.ts';
import { headerText } from '../http/headers.ts';
import { type Post, scopedPath } from '../http/transport.ts';
import type { DeletionKind } from './outcomes.ts';

/** The answer to one deletion. It never contains an id or a text of the service. */
export interface DeletionAnswer {
  /**
   * `done`: all four fields say so. `rejected`: this id is not accepted, others may be. `retry`: the request may be
   * sent again, which is harmless. `wait`: nothing may be sent before `limits.resetAt`. `stop`: nothing more may be
   * sent. `undecided`: the answer does not tell.
   */
  readonly kind: DeletionKind;
  /** The service's code, or a short word if there was none. */
  readonly code: string;
  /** HTTP status; undefined if no answer came. */
  readonly status: number | undefined;
  readonly message: string;
  readonly limits: Limits;
}

export interface DeletionService {
  /**
   * Sends one deletion without any retry or pacing. Rejects when aborted, with the signal's reason, and with a
   * configuration failure if nothing can be sent at all; never because of the service or the network.
   */
  deleteProfile(externalId: string, signal: AbortSignal): Promise<DeletionAnswer>;
  close(): Promise<void>;
}

/**
 * True for an id that JSON can carry unchanged: any other would name somebody else at the service, and an empty one
 * nobody.
 */
export const isSendable = (id: string): boolean => id !== '' && Buffer.from(id).toString() === id;

/** The request as specified, made at an instant (ms since 1970). */
export function deletionPost(externalId: string, at: number, serviceId: string, token: Secret): Post {
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
