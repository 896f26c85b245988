import { answer, type Exchange, fail, HTML_503, writeHead } from '../exchange.ts';
import { limitHeaders } from '../limit.ts';
import type { Fault, FaultOf } from './fault.ts';

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
