import type { FaultKind, Operation } from './scenario.ts';

/** One request as it was seen, and how it was answered. Entries fill up while the request is served. */
export interface SeenRequest {
  /** Counts from 1 over all requests. */
  readonly number: number;
  readonly operation: Operation | undefined;
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON, or the text itself where it is none. */
  body: unknown;
  /** The injected clock at its arrival, ms. */
  readonly at: number;
  /** HTTP status answered; undefined while, or because, there was none. */
  status: number | undefined;
  /** `ok`, the message or code of a failure, or `closed` where the client went away first. */
  outcome: string | undefined;
  fault: FaultKind | undefined;
  /** Bytes of body handed to the socket. */
  bytes: number;
  /** True once the exchange is over, whichever way. */
  done: boolean;
}

/** What became of one external id: how often it was asked for, really deleted, and answered how. */
export interface SeenDeletion {
  readonly externalId: string;
  count: number;
  deleted: number;
  /** Codes, `HTTP 429`, `cut`: the last twenty, oldest first. */
  answers: readonly string[];
}

const MAX_REQUESTS = 20_000;

/** What the service has seen. Keeps the last requests and every external id. */
export class RequestLog {
  readonly #requests: SeenRequest[] = [];
  readonly #deletions = new Map<string, SeenDeletion>();
  #count = 0;

  add(request: Omit<SeenRequest, 'number'>): SeenRequest {
    const seen = { number: ++this.#count, ...request };
    this.#requests.push(seen);
    if (this.#requests.length > MAX_REQUESTS * 2) this.#requests.splice(0, this.#requests.length - MAX_REQUESTS);
    return seen;
  }

  requests(): readonly SeenRequest[] {
    return this.#requests.slice(-MAX_REQUESTS);
  }

  /** The entry of an id, which whoever serves the request fills. */
  deletionOf(externalId: string): SeenDeletion {
    const seen = this.#deletions.get(externalId) ?? { externalId, count: 0, deleted: 0, answers: [] };
    this.#deletions.set(externalId, seen);
    return seen;
  }

  deletions(): readonly SeenDeletion[] {
    return [...this.#deletions.values()].map((seen) => ({ ...seen }));
  }
}
