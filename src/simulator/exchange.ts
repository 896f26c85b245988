import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SeenRequest } from './request-log.ts';
import type { Service } from './service.ts';

const MOST_BODY_BYTES = 32 * 1024 * 1024;

/** One request and its answer, with what the answer's headers are made of. */
export interface Exchange {
  readonly service: Service;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly seen: SeenRequest;
  /** Aborted when the connection is gone or the answer is over. */
  readonly closed: AbortSignal;
}

export const HTML_503 =
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
    if (length > MOST_BODY_BYTES) return undefined;
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
