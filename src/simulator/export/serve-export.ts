// This folder: the embedded service's export operation.

import { countRows } from '../data/csv.ts';
import { type Exchange, fail, failByFault, isJson } from '../exchange.ts';
import { type Allowance, limitHeaders } from '../limit.ts';
import { sendExport } from './export-body.ts';
import { daysRequested, type ExportRequest, readExportRequest } from './export-request.ts';

/** Serves one export: token, service, quota, body, fault, data, in that order. */
export async function serveExport(exchange: Exchange): Promise<void> {
  const { service, res, seen } = exchange;
  const { answers } = service.scenario;
  if (exchange.req.headers.authorization !== `Bearer ${service.tokens.export}`) {
    return fail(exchange, 401, 'unauthorized_token', limitsOf(exchange));
  }
  const isKnown = seen.query.service_id === service.serviceId;
  if (!isKnown && answers.unknown_service === '401')
    return fail(exchange, 401, 'unauthorized_token', limitsOf(exchange));
  if (!isKnown && (answers.unknown_service === '400' || seen.query.service_id === undefined)) {
    return fail(exchange, 400, 'invalid_parameter', limitsOf(exchange));
  }
  if (refuseOverLimit(exchange)) return;
  service.runningExports++;
  res.once('close', () => service.runningExports--);
  await serveCounted(exchange, isKnown);
}

/** An export that is within the limits; where failed ones do not count, they give their place back. */
async function serveCounted(exchange: Exchange, isKnown: boolean): Promise<void> {
  const { service, seen } = exchange;
  const request = isJson(exchange)
    ? readExportRequest(seen.body, service.scenario, service.clock.now())
    : 'invalid_parameter';
  if (typeof request === 'string') {
    if (!service.scenario.limits.failed_exports_count) service.exportWindow.giveBack();
    return fail(exchange, 400, request, limitsOf(exchange));
  }
  const fault = service.rules.next({ operation: 'export', from: request.from, to: request.to });
  seen.fault = fault?.kind;
  const limits = limitsOf(exchange);
  if (fault && (await failByFault(exchange, fault, limits))) return;
  if (isTooBig(exchange, request)) return fail(exchange, service.scenario.too_big.status, 'query_error', limits);
  await sendExport(exchange, request, { fault, limits, isEmpty: !isKnown });
}

const isFiltered = (request: ExportRequest): boolean =>
  request.query.events.condition !== 'all' && request.query.events.names.size > 0;

function isTooBig({ service }: Exchange, request: ExportRequest): boolean {
  const rule = service.scenario.too_big;
  if (rule.most_rows !== undefined && countRows(service.dataset, request.query, rule.most_rows) > rule.most_rows)
    return true;
  if (rule.unless_events && isFiltered(request)) return false;
  if (rule.longest_days !== undefined && daysRequested(request) > rule.longest_days) return true;
  return rule.days.some((day) => day >= request.query.from && day <= request.query.last);
}

function refuseOverLimit(exchange: Exchange): boolean {
  const { service } = exchange;
  const { limits } = service.scenario;
  const now = service.clock.now();
  const hourly = standingOf(exchange);
  const isAtConcurrencyLimit = service.runningExports >= limits.concurrent_exports;
  if (!hourly.isOver && !isAtConcurrencyLimit) {
    service.exportWindow.take(now);
    return false;
  }
  exchange.seen.outcome = hourly.isOver ? 'hourly_limit' : 'concurrent_limit';
  const shown = !hourly.isOver && limits.concurrent_remaining === 'zero' ? { ...hourly, remaining: 0 } : hourly;
  const retryAfter = limits.retry_after && { 'Retry-After': String(Math.ceil((shown.resetAt - now) / 1_000)) };
  fail(exchange, 429, 'too_many_api_requests', { ...limitHeaders(limits, 'export', shown, now), ...retryAfter });
  return true;
}

function standingOf({ service }: Exchange): Allowance {
  const { limits } = service.scenario;
  return service.exportWindow.allowance(limits.window, limits.exports_per_hour, service.clock.now());
}

/** The limit headers of an answer that is no 429. */
function limitsOf(exchange: Exchange): Record<string, string> {
  const { limits } = exchange.service.scenario;
  if (limits.headers_on === '429') return {};
  return limitHeaders(limits, 'export', standingOf(exchange), exchange.service.clock.now());
}
