// This folder: the embedded service's export operation.

import { addDays, type Day, dayAt, daysBetween, isDay } from '../../base/days.ts';
import { isObject } from '../../base/json.ts';
import { countRows } from '../data/csv.ts';
import { EVENT_KINDS } from '../data/event.ts';
import { isFiltered, type NameFilter, type RowQuery } from '../data/row-query.ts';
import { type Exchange, fail, failByFault, isJson } from '../exchange.ts';
import type { Scenario } from '../scenario.ts';
import { sendExport } from './export-body.ts';

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
  limit.count();
  service.runningExports++;
  res.once('close', () => service.runningExports--);
  const now = service.clock.now();
  const request = isJson(exchange) ? readExportRequest(seen.body, service.scenario, now) : 'invalid_parameter';
  if (typeof request === 'string') {
    if (!limits.failed_exports_count) limit.giveBack();
    return fail(exchange, 400, request, limit.headers());
  }
  const fault = service.faultOf({ operation: 'export', from: request.from, to: request.to });
  seen.fault = fault?.kind;
  if (fault !== undefined && failByFault(exchange, fault, 'export')) return;
  if (isTooBig(exchange, request)) return fail(exchange, too_big.status, 'query_error', limit.headers());
  await sendExport(exchange, request.query, fault, !isKnown);
}

/** Answers with a 429, for the limit of an hour or of exports at once. */
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
  if (longest_days !== undefined && daysBetween(request.from, request.to) + 1 > longest_days) return true;
  return days.some((day) => day >= query.from && day <= query.last);
}

/** A checked export body: the requested days, and the query that follows from them. */
interface ExportRequest {
  readonly from: Day;
  readonly to: Day;
  readonly query: RowQuery;
}

type ExportError = 'invalid_parameter' | 'exceed_date_range_limit';

const CONDITIONS = ['all', 'include', 'exclude'] as const;

/** Reads an export body as the service would; returns the query, or the reason for a refusal. */
function readExportRequest(body: unknown, scenario: Scenario, now: number): ExportRequest | ExportError {
  if (!isObject(body)) return 'invalid_parameter';
  const events = readFilter(body.events, body.events_condition_type, { isRequired: true });
  const properties = readFilter(body.properties, body.properties_condition_type);
  const today = dayAt(now, scenario.days.zone_hours);
  const dates = readDates(body, scenario, today);
  if (events === undefined || properties === undefined || dates === undefined) return 'invalid_parameter';
  if (scenario.answers.known_events_only && !areKnown(events)) return 'invalid_parameter';
  if (dates.from < addDays(today, -scenario.days.history_days)) return 'exceed_date_range_limit';
  const form = dates.from === dates.to ? scenario.days.single_days : 'as_ranges';
  if (form === 'error') return 'invalid_parameter';
  const isIncluded = form === 'as_ranges' ? scenario.days.to_date_inclusive : form === 'whole';
  const last = isIncluded ? dates.to : addDays(dates.to, -1);
  return { ...dates, query: { from: dates.from, last, events, properties, now } };
}

function readFilter(names: unknown, condition: unknown, { isRequired = false } = {}): NameFilter | undefined {
  const known = CONDITIONS.find((one) => one === (condition ?? (isRequired ? undefined : 'all')));
  if (known === undefined) return undefined;
  const list: unknown = names ?? [];
  if (!Array.isArray(list) || !list.every((name) => typeof name === 'string')) return undefined;
  return { condition: known, names: new Set(list) };
}

function readDates(body: Record<string, unknown>, scenario: Scenario, today: Day): { from: Day; to: Day } | undefined {
  const from = body.from_date;
  if (typeof from !== 'string' || !isDay(from)) return undefined;
  const omitted = scenario.days.to_date_omitted === 'today' && from <= today ? today : from;
  const to = body.to_date ?? omitted;
  if (typeof to !== 'string' || !isDay(to) || to < from) return undefined;
  return scenario.days.future === 'error' && to > today ? undefined : { from, to };
}

function areKnown(filter: NameFilter): boolean {
  return [...filter.names].every((name) => EVENT_KINDS.some((kind) => kind.name === name));
}
