import { codeOf, UserError } from '../base/errors.ts';
import type { Runtime } from '../base/runtime.ts';
import { sentenceOf } from '../base/text.ts';
import type { DestinationConfig } from '../config/destination.ts';
import { checkCharset, firstBytes } from '../http/body.ts';
import { BodyMismatch, networkProblem } from '../http/failures.ts';
import { withinTime } from '../http/time-limit.ts';
import { type OutgoingRequest, Transport } from '../http/transport.ts';
import { DELETION_OUTCOMES, type DeletionKind, deletionTraits } from './deletion-outcomes.ts';
import { operationRequest } from './operation-request.ts';
import { matchOutcome } from './outcome-table.ts';
import { type QuotaReport, readQuotaReport } from './quota-report.ts';

/** The answer to one deletion. It never contains an id or a text of the service. */
export interface DeletionAnswer {
  readonly kind: DeletionKind;
  /** The service's code, or a short word if there was none. */
  readonly code: string;
  /** HTTP status; undefined if no whole answer came. */
  readonly status: number | undefined;
  readonly message: string;
  readonly quotaReport: QuotaReport;
}

type DeletionClientOptions = Pick<Runtime, 'clock' | 'env'> &
  Pick<DestinationConfig, 'baseUrl' | 'serviceId' | 'importToken' | 'maxConcurrentRequests'>;

/** Maximum time from the request to the last byte of the answer. */
const DELETION_TIMEOUT_MS = 60_000;

/** The deletion operation over HTTP: one request and its answer; the caller retries and paces. */
export class DeletionClient {
  readonly #options: DeletionClientOptions;
  readonly #transport: Transport;

  constructor(options: DeletionClientOptions) {
    const { baseUrl, env, clock, maxConcurrentRequests: keptConnections } = options;
    this.#options = options;
    this.#transport = new Transport({ baseUrl, env, clock, keptConnections });
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  /**
   * Sends one deletion, of an id that is valid Unicode. Whatever service and network do is an answer. Rejects with the
   * signal's reason, with a configuration failure if nothing can be sent at all, and with a defect. `hasConfirmed`: the
   * service has confirmed a deletion before.
   */
  async deleteProfile(externalId: string, signal: AbortSignal, hasConfirmed: boolean): Promise<DeletionAnswer> {
    signal.throwIfAborted();
    const { clock, serviceId, importToken } = this.#options;
    const request = operationRequest(
      '/api/v1/identities/delete',
      serviceId,
      { access_token: importToken.reveal() },
      { identity: { external_id: externalId }, request_datetime: new Date(clock.now()).toISOString() },
    );
    try {
      return await withinTime(DELETION_TIMEOUT_MS, { clock, signal }, (timedSignal) =>
        this.#exchange(request, timedSignal, hasConfirmed),
      );
    } catch (error) {
      signal.throwIfAborted();
      // Every error of a connection has a code; another one is a defect.
      if (error instanceof UserError || codeOf(error) === undefined) throw error;
      return answerForError(error, this.#transport.host);
    }
  }

  async #exchange(request: OutgoingRequest, signal: AbortSignal, hasConfirmedBefore: boolean) {
    const answer = await this.#transport.send(request, signal);
    try {
      const { status, headers } = answer;
      if (status === 200) checkCharset(headers);
      // A failure counts by its status, also one whose body cannot be read.
      const body = await firstBytes(answer.bytes(), { keepsPart: status !== 200 });
      const context = { host: this.#transport.host, hasConfirmedBefore };
      const traits = deletionTraits(status, body.toString(), context);
      const { kind, code = traits.code ?? `http_${status}`, clause } = matchOutcome(DELETION_OUTCOMES, traits);
      const quotaReport = readQuotaReport(headers, this.#options.clock.now());
      return { kind, code, status, message: sentenceOf(clause), quotaReport };
    } finally {
      answer.close();
    }
  }
}

/** The answer where none came, or no whole one: the profile may be deleted, and a second request is harmless. */
function answerForError(error: unknown, host: string): DeletionAnswer {
  const { needsUser, code, clause } = networkProblem(error, host, 'base_url');
  const noAnswer = { code, status: undefined, quotaReport: {} };
  if (needsUser) return { ...noAnswer, kind: 'stop', message: sentenceOf(clause) };
  const kind = error instanceof BodyMismatch && !error.isBroken ? 'undecided' : 'retry';
  return { ...noAnswer, kind, message: `Not sure whether it is deleted: ${clause}.` };
}
