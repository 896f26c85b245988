import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SimulatedService } from './service.ts';

/** One request and its answer. */
export interface Exchange {
  readonly service: SimulatedService;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly serviceId: string | null;
  /** Parsed JSON; undefined if the body or its content type is something else. */
  readonly body: unknown;
  /** Aborted when the connection is closed or the answer is over. */
  readonly closed: AbortSignal;
}

export function answerJson({ res }: Exchange, status: number, value: unknown, headers: Record<string, string> = {}) {
  const body = Buffer.from(JSON.stringify(value));
  res.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': body.length, ...headers });
  res.end(body);
}

/** Answers with a failure in the provider's form. */
export function fail(exchange: Exchange, status: number, message: string, headers: Record<string, string> = {}): void {
  answerJson(exchange, status, { result: 'fail', message }, headers);
}

export const retryAfter = (seconds: number | undefined): Record<string, string> =>
  seconds === undefined ? {} : { 'Retry-After': String(seconds) };
