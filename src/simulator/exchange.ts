import type { IncomingMessage, ServerResponse } from 'node:http';
import { limitHeaders } from './limit.ts';
import type { SeenRequest } from './request-log.ts';
import type { Fault, FaultOf } from './scenario.ts';
import type { Service } from './service.ts';

const MAX_BODY_BYTES = 32 * 1024 * 1024;

/** One request and its answer, with what the answer's headers are made of. */
export interface Exchange {
  readonly service: Service;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly seen: SeenRequest;
  /** Aborted when the connection is gone or the answer is over. */
  readonly closed: AbortSignal;
}

const HTML_503 =
  '<html><head><title>503 Service Temporarily Unavailable</title></head><body><h1>503</h1></body></html>';

/** Answers with a whole body at once. */
export function answer(
  exchange: Exchange,
  status: number,
  type: string,
  body: string,
  headers: Record<string, string> = {},
): void {
  const bytes = Buffer.from(body);
  writeHead(exchange, status, { 'Content-Type': type, 'Content-Length': String(bytes.length), ...headers });
  exchange.seen.bytes = bytes.length;
  exchange.res.end(bytes);
}

/** A failure of the export as the provider writes them. */
export function fail(exchange: Exchange, status: number, message: string, headers: Record<string, string> = {}): void {
  exchange.seen.outcome ??= message;
  answer(exchange, status, 'application/json', JSON.stringify({ result: 'fail', message }), headers);
}

export function writeHead(exchange: Exchange, status: number, headers: Record<string, string>): void {
  const { res, seen, service } = exchange;
  seen.status = status;
  const { date_header, date_skew_s } = service.scenario.answers;
  res.sendDate = false;
  const date = new Date(service.clock.now() + date_skew_s * 1_000).toUTCString();
  res.writeHead(status, { ...(date_header && { Date: date }), ...headers });
}

/** The request's body as text; undefined when it is longer than the service takes. */
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

export function parseBody(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export const isJson = (exchange: Exchange): boolean =>
  /^application\/json\s*(;|$)/i.test(exchange.req.headers['content-type'] ?? '');

/** Answers with a fault that leaves no room for data; false where the fault is one of the body, sent later. */
export async function failByFault(exchange: Exchange, fault: Fault, limits: Record<string, string>): Promise<boolean> {
  switch (fault.kind) {
    case 'status':
      answerStatus(exchange, fault, limits);
      return true;
    case 'rate_limit':
      answerRateLimit(exchange, fault);
      return true;
    case 'refuse':
      exchange.res.socket?.resetAndDestroy();
      return true;
    case 'redirect':
      answerRedirect(exchange, fault);
      return true;
    default:
      return false;
  }
}

function answerStatus(exchange: Exchange, fault: FaultOf<'status'>, limits: Record<string, string>): void {
  exchange.seen.outcome = `HTTP ${fault.status}`;
  const type = fault.content_type ?? 'text/html';
  if (fault.body !== undefined) answer(exchange, fault.status, type, fault.body, limits);
  else if (fault.status === 500) fail(exchange, 500, 'unknown_error', limits);
  else answer(exchange, fault.status, 'text/html', HTML_503.replaceAll('503', String(fault.status)));
}

function answerRateLimit(exchange: Exchange, fault: FaultOf<'rate_limit'>): void {
  const { service, seen } = exchange;
  const now = service.clock.now();
  const { limits } = service.scenario;
  const form = fault.reset === 'absent' ? { ...limits, reset: 'absent' as const } : limits;
  const allowance = { remaining: fault.remaining, resetAt: now + fault.reset_in_s * 1_000 };
  const operation = seen.operation ?? 'export';
  seen.outcome = 'rate_limit';
  fail(exchange, 429, 'too_many_api_requests', limitHeaders(form, operation, allowance, now));
}

function answerRedirect(exchange: Exchange, fault: FaultOf<'redirect'>): void {
  exchange.seen.outcome = 'redirect';
  writeHead(exchange, fault.status, { Location: fault.location ?? '/elsewhere', 'Content-Length': '0' });
  exchange.res.end();
}
