import type { Secret } from '../../base/secrets.ts';
import type { Limits } from '../export/protocol.ts';
import { headerText } from '../http/headers.ts';
import { type Post, scopedPath } from '../http/transport.ts';
import type { DeletionKind } from './outcomes.ts';

/** What became of one deletion; never holds an id or a text of the service. */
export interface DeletionAnswer {
  /**
   * `done`: all four fields say so. `rejected`: this id is not accepted, others may be. `retry`: the same again, which is
   * harmless. `wait`: nothing more before `limits.resetAt`. `stop`: nothing more at all. `undecided`: nobody can tell.
   */
  readonly kind: DeletionKind;
  /** The service's code, or a short word for what came instead. */
  readonly code: string;
  /** Undefined when no answer came. */
  readonly status: number | undefined;
  readonly message: string;
  readonly limits: Limits;
}

export interface DeletionService {
  /**
   * Sends one deletion, without any retry or pacing. Rejects when aborted, with the signal's reason, and with a
   * configuration failure where nothing can be sent at all; never for what the service or the network did.
   */
  deleteProfile(externalId: string, signal: AbortSignal): Promise<DeletionAnswer>;
  close(): Promise<void>;
}

/** An id that JSON cannot carry unchanged would name somebody else at the service; an empty one names nobody. */
export const isSendable = (id: string): boolean => id !== '' && Buffer.from(id).toString() === id;

/** The request exactly as specified, made at an instant (ms since 1970). */
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
