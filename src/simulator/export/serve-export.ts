// This folder: the embedded service's export operation.

import { countRows } from '../data/csv.ts';
import { isFiltered } from '../data/row-query.ts';
import { type Exchange, fail, failByFault, isJson } from '../exchange.ts';
import { sendExport } from './export-body.ts';
import { daysRequested, type ExportRequest, readExportRequest } from './export-request.ts';

/** Serves one export: token, service, quota, body, fault, data, in that order. */
export async function serveExport(exchange: Exchange): Promise<void> {
  const { service, res, seen, req } = exchange;
  const { answers, limits, too_big } = service.scenario;
  const limit = service.limits.export;
  const isKnown = seen.query.service_id === service.options.serviceId;
  const isToken = req.headers.authorization === `Bearer ${service.tokens.export}`;
  if (!isToken || (!isKnown && answers.unknown_service === '401')) {
    return fail(exchange, 401, 'unauthorized_token', limit.headers());
  }
  if (!isKnown && (answers.unknown_service === '400' || seen.query.service_id === undefined)) {
    return fail(exchange, 400, 'invalid_parameter', limit.headers());
  }
  if (limit.allowance().remaining === 0 || service.runningExports >= limits.concurrent_exports) return refuse(exchange);
  limit.take();
  service.runningExports++;
  res.once('close', () => service.runningExports--);
  const now = service.clock.now();
  const request = isJson(exchange) ? readExportRequest(seen.body, service.scenario, now) : 'invalid_parameter';
  if (typeof request === 'string') {
    if (!limits.failed_exports_count) limit.giveBack();
    return fail(exchange, 400, request, limit.headers());
  }
  const fault = service.faults.next({ operation: 'export', from: request.from, to: request.to });
  seen.fault = fault?.kind;
  if (fault !== undefined && failByFault(exchange, fault, 'export')) return;
  if (isTooBig(exchange, request)) return fail(exchange, too_big.status, 'query_error', limit.headers());
  await sendExport(exchange, request, fault, !isKnown);
}

/** A 429: the limit of an hour, or of exports at once. */
function refuse(exchange: Exchange): void {
  const { scenario, limits, clock } = exchange.service;
  const { remaining, resetAt } = limits.export.allowance();
  exchange.seen.outcome = remaining === 0 ? 'hourly_limit' : 'concurrent_limit';
  const headers = limits.export.headers(scenario.limits.concurrent_remaining === 'zero' ? { remaining: 0 } : {});
  const seconds = Math.ceil((resetAt - clock.now()) / 1_000);
  const retryAfter = scenario.limits.retry_after && { 'Retry-After': String(seconds) };
  fail(exchange, 429, 'too_many_api_requests', { ...headers, ...retryAfter });
}

function isTooBig({ service }: Exchange, request: ExportRequest): boolean {
  const { query } = request;
  const { most_rows, unless_events, longest_days, days } = service.scenario.too_big;
  if (most_rows !== undefined && countRows(service.dataset, query, most_rows) > most_rows) return true;
  if (unless_events && isFiltered(query.events)) return false;
  if (longest_days !== undefined && daysRequested(request) > longest_days) return true;
  return days.some((day) => day >= query.from && day <= query.last);
}
