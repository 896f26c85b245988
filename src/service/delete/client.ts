// This folder: the deletion operation: one request, its answer, and what the answer means.

import type { Clock } from '../../base/clock.ts';
import { type Env, systemEnv } from '../../base/env.ts';
import { UserError } from '../../base/errors.ts';
import type { Logger } from '../../base/log.ts';
import type { DestinationConfig } from '../../config/destination.ts';
import { TimeLimitReached, withinTime } from '../http/abort.ts';
import { codingOf } from '../http/body.ts';
import { NO_LIMITS, readLimits } from '../http/headers.ts';
import { networkProblem } from '../http/network.ts';
import { type Post, type RawAnswer, Transport } from '../http/transport.ts';
import { firstMatch } from '../outcome.ts';
import { DELETION_OUTCOMES, type DeletionFacts, type DeletionKind, deletionFacts } from './outcomes.ts';
import { type DeletionAnswer, type DeletionService, deletionPost, isSendable } from './protocol.ts';

export interface DeletionServiceOptions
  extends Pick<DestinationConfig, 'baseUrl' | 'serviceId' | 'importToken' | 'maxConcurrentRequests'> {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly env?: Env;
  /** From the request to the last byte of the answer; default 60 s. */
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 60_000;
const MAX_BYTES = 64 * 1024;

/** The deletion operation over HTTP: one request and its answer, classified by `outcomes.ts`; retries and pacing are the caller's. */
export function createDeletionService(options: DeletionServiceOptions): DeletionService {
  const transport = new Transport({
    baseUrl: options.baseUrl,
    env: options.env ?? systemEnv,
    clock: options.clock,
    keptConnections: options.maxConcurrentRequests,
  });
  let hasDeleted = false;
  return {
    async deleteProfile(externalId, signal) {
      const answer = await deleteOne(transport, { ...options, hasDeleted }, externalId, signal);
      hasDeleted ||= answer.kind === 'done';
      return answer;
    },
    close: () => transport.close(),
  };
}

async function deleteOne(
  transport: Transport,
  options: DeletionServiceOptions & Pick<DeletionFacts, 'hasDeleted'>,
  externalId: string,
  signal: AbortSignal,
): Promise<DeletionAnswer> {
  signal.throwIfAborted();
  const { clock, hasDeleted, timeoutMs = TIMEOUT_MS } = options;
  if (!isSendable(externalId)) {
    return unanswered('rejected', 'not_text', 'The id is empty or no valid Unicode text: nothing was sent for it.');
  }
  const { serviceId, importToken } = options;
  const post = deletionPost(externalId, clock.now(), serviceId, importToken);
  try {
    return await withinTime(timeoutMs, { clock, signal }, (limited) =>
      exchange(transport, post, { clock, hasDeleted }, limited),
    );
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof UserError) throw error;
    return networkAnswer(error, transport.host);
  }
}

const unanswered = (kind: DeletionKind, code: string, message: string): DeletionAnswer => ({
  kind,
  code,
  status: undefined,
  message,
  limits: NO_LIMITS,
});

async function exchange(
  transport: Transport,
  post: Post,
  { clock, hasDeleted }: { readonly clock: Clock; readonly hasDeleted: boolean },
  signal: AbortSignal,
): Promise<DeletionAnswer> {
  const answer = await transport.send(post, signal);
  try {
    const text = await wholeText(answer.body);
    const read = codingOf(answer) === 'identity' ? text : '';
    return answerFrom(answer, deletionFacts(answer.status, read, { host: transport.host, hasDeleted }), clock.now());
  } finally {
    answer.disconnect();
  }
}

/** A whole body as text; one that is longer than any answer to a deletion reads as nothing. Throws where it is cut. */
async function wholeText(body: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > MAX_BYTES) return '';
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function answerFrom({ status, headers }: RawAnswer, facts: DeletionFacts, now: number): DeletionAnswer {
  const row = firstMatch(DELETION_OUTCOMES, facts);
  const { remaining, resetAt, retryAt } = readLimits(headers, now);
  const waitUntil = Math.max(resetAt ?? 0, retryAt ?? 0) || undefined;
  return {
    kind: row.kind,
    code: row.code ?? facts.code ?? `http_${status}`,
    status,
    message: row.message(facts),
    limits: { remaining, resetAt: row.kind === 'wait' ? waitUntil : resetAt },
  };
}

/** A connection that broke after the request was sent may have deleted the profile: a second request is harmless. */
function networkAnswer(error: unknown, host: string): DeletionAnswer {
  if (error instanceof TimeLimitReached) {
    return unanswered('retry', 'timeout', `${host} did not answer in time: it may or may not be deleted.`);
  }
  const { config, code, message } = networkProblem(error, host);
  if (config) return unanswered('stop', code, message);
  return unanswered('retry', code, `Not sure whether it is deleted: ${message}.`);
}
