import type { FaultKind, Operation } from './scenario.ts';

/** One request and its answer. The fields are filled while the request is served. */
export interface SeenRequest {
  readonly number: number;
  readonly operation: Operation | undefined;
  readonly method: string;
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Headers, by names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Body as parsed JSON, or as text if it is none. */
  body: unknown;
  /** Time of its arrival by the injected clock (ms). */
  readonly at: number;
  /** HTTP status of the answer; undefined before it, and if there was none. */
  status: number | undefined;
  /** `ok`, the message or code of a failure, or `closed` if the client closed the connection first. */
  outcome: string | undefined;
  fault: FaultKind | undefined;
  /** Number of bytes of the body handed to the socket. */
  bytes: number;
  /** True once the exchange is over, however it ended. */
  done: boolean;
}

/** The requests about one external id: how often its deletion was requested and executed, and the answers. */
export interface SeenDeletion {
  readonly externalId: string;
  count: number;
  deleted: number;
  /** Codes, `HTTP 429` or `cut`: the last twenty answers, oldest first. */
  answers: readonly string[];
}

const MAX_REQUESTS = 20_000;

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

  /** The entry of an id; the operation that serves the request fills it. */
  deletionOf(externalId: string): SeenDeletion {
    const seen = this.#deletions.get(externalId) ?? { externalId, count: 0, deleted: 0, answers: [] };
    this.#deletions.set(externalId, seen);
    return seen;
  }

  deletions(): readonly SeenDeletion[] {
    return [...this.#deletions.values()].map((seen) => ({ ...seen }));
  }
}
