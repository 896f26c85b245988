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
  readonly count: number;
  readonly deleted: number;
  /** Codes, `HTTP 429`, `cut`: the last twenty, oldest first. */
  readonly answers: readonly string[];
}

const MAX_ANSWERS = 20;

const MAX_REQUESTS = 20_000;

/** What the service has seen. Keeps the last requests and every external id. */
export class RequestLog {
  readonly #requests: SeenRequest[] = [];
  readonly #deletions = new Map<string, { count: number; deleted: number; answers: string[] }>();
  #number = 0;

  nextNumber(): number {
    return ++this.#number;
  }

  add(request: SeenRequest): void {
    this.#requests.push(request);
    if (this.#requests.length > MAX_REQUESTS * 2) this.#requests.splice(0, this.#requests.length - MAX_REQUESTS);
  }

  requests(): readonly SeenRequest[] {
    return this.#requests.slice(-MAX_REQUESTS);
  }

  sawDeletion(id: string): void {
    const known = this.#deletions.get(id);
    if (known) known.count++;
    else this.#deletions.set(id, { count: 1, deleted: 0, answers: [] });
  }

  deleted(id: string): void {
    const known = this.#deletions.get(id);
    if (known) known.deleted++;
  }

  answeredDeletion(id: string, answer: string): void {
    const known = this.#deletions.get(id);
    if (known === undefined) return;
    known.answers.push(answer);
    if (known.answers.length > MAX_ANSWERS) known.answers.shift();
  }

  deletions(): readonly SeenDeletion[] {
    return [...this.#deletions].map(([externalId, seen]) => ({ externalId, ...seen, answers: [...seen.answers] }));
  }
}
