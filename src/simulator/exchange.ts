import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SeenRequest } from './request-log.ts';
import type { Fault, Operation } from './scenario.ts';
import type { Service } from './service.ts';

const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** One request and its answer, with the values for the answer's headers. */
export interface Exchange {
  readonly service: Service;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly seen: SeenRequest;
  /** Aborted when the connection is closed or the answer is over. */
  readonly closed: AbortSignal;
}

const HTML_503 =
  '<html><head><title>503 Service Temporarily Unavailable</title></head><body><h1>503</h1></body></html>';

export function answer(
  exchange: Exchange,
  status: number,
  { type, body }: { readonly type: string; readonly body: string },
  headers: Record<string, string> = {},
): void {
  const bytes = Buffer.from(body);
  writeHead(exchange, status, { 'Content-Type': type, 'Content-Length': String(bytes.length), ...headers });
  exchange.seen.bytes = bytes.length;
  exchange.res.end(bytes);
}

/** Answers with a failure of the export in the provider's form. */
export function fail(exchange: Exchange, status: number, message: string, headers: Record<string, string> = {}): void {
  exchange.seen.outcome ??= message;
  answer(exchange, status, { type: 'application/json', body: JSON.stringify({ result: 'fail', message }) }, headers);
}

export function writeHead(exchange: Exchange, status: number, headers: Record<string, string>): void {
  const { res, seen, service } = exchange;
  seen.status = status;
  const { date_header, date_skew_s } = service.scenario.answers;
  res.sendDate = false;
  const date = new Date(service.clock.now() + date_skew_s * 1_000).toUTCString();
  res.writeHead(status, { ...(date_header && { Date: date }), ...headers });
}

/** Reads the request's body as text; undefined if it is longer than the service accepts. */
export async function readBody(req: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of req as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > MAX_BODY_BYTES) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

export const isJson = (exchange: Exchange): boolean =>
  /^application\/json\s*(;|$)/i.test(exchange.req.headers['content-type'] ?? '');

/** Answers with a fault that has no body of data; false if the fault is one of the body, which is sent later. */
export function failByFault(exchange: Exchange, fault: Fault, operation: Operation): boolean {
  const { service, seen, res } = exchange;
  const limit = service.limits[operation];
  switch (fault.kind) {
    case 'status': {
      const { status, body, content_type = 'text/html', retry_after_s } = fault;
      const retryAfter = retry_after_s !== undefined && { 'Retry-After': String(retry_after_s) };
      const headers = { ...limit.headers(), ...retryAfter };
      const html = HTML_503.replaceAll('503', String(status));
      seen.outcome = `HTTP ${status}`;
      if (body !== undefined) answer(exchange, status, { type: content_type, body }, headers);
      else if (status === 500) fail(exchange, 500, 'unknown_error', headers);
      else answer(exchange, status, { type: 'text/html', body: html }, { ...retryAfter });
      return true;
    }
    case 'rate_limit': {
      const resetAt = fault.reset === 'absent' ? undefined : service.clock.now() + fault.reset_in_s * 1_000;
      seen.outcome = 'rate_limit';
      fail(exchange, 429, 'too_many_api_requests', limit.headers({ remaining: fault.remaining, resetAt }));
      return true;
    }
    case 'refuse':
      res.socket?.resetAndDestroy();
      return true;
    case 'redirect':
      seen.outcome = 'redirect';
      writeHead(exchange, fault.status, { Location: fault.location ?? '/elsewhere', 'Content-Length': '0' });
      res.end();
      return true;
    default:
      return false;
  }
}
