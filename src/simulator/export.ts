import { once } from 'node:events';
import { addDays, type Day, dayAt, isDay } from '../base/days.ts';
import { isObject, type JsonObject } from '../base/json.ts';
import { allows, type Dataset, type NameFilter, type RowQuery } from './data/dataset.ts';
import { ZONE_HOURS } from './data/event.ts';
import { PROFILE_PROPERTIES } from './data/profiles.ts';
import { type Exchange, fail, retryAfter } from './exchange.ts';
import type { SimulatedService } from './service.ts';

const MESSAGES: Readonly<Record<number, string>> = {
  400: 'invalid_parameter',
  401: 'unauthorized_token',
  429: 'too_many_api_requests',
};

/** A request that the service answers with 400, and the message. */
interface Refusal {
  readonly refusal: string;
}

const INVALID: Refusal = { refusal: MESSAGES[400] };

/** Serves an export of events. */
export const serveExport = (exchange: Exchange): Promise<void> =>
  serveCsv(exchange, 'export', ({ service, body }) => {
    const request = readExportRequest(body, service);
    return 'refusal' in request ? request : { lines: eventLines(service.dataset, request.query) };
  });

/** Serves an export of profiles, which counts against the same limits. */
export const serveProfiles = (exchange: Exchange): Promise<void> =>
  serveCsv(exchange, 'profiles', ({ service, body }) => {
    const columns = isObject(body) ? requestedColumns(body) : undefined;
    return columns === undefined ? INVALID : { lines: profileLines(service.dataset, columns) };
  });

/** Serves one export: token, service, limits, body, data, in that order. */
async function serveCsv(
  exchange: Exchange,
  operation: 'export' | 'profiles',
  answerTo: (exchange: Exchange) => Refusal | { readonly lines: Iterable<string> },
): Promise<void> {
  const { service, res, req } = exchange;
  const { scenario, limits, clock } = service;
  const hasToken = req.headers.authorization === `Bearer ${scenario.export_token}`;
  if (!hasToken || exchange.serviceId !== scenario.service_id) return fail(exchange, 401, MESSAGES[401]);
  if (service.runningExports >= scenario.concurrent_exports) return refuse(exchange, 429, 1);
  if (!limits.export.take()) return refuse(exchange, 429);
  service.runningExports++;
  res.once('close', () => service.runningExports--);
  const plannedAnswer = service.takePlannedAnswer(operation);
  await clock.sleep(plannedAnswer?.latency_ms ?? 0, exchange.closed);
  if (plannedAnswer?.status !== undefined) return refuse(exchange, plannedAnswer.status, plannedAnswer.retry_after_s);
  const answer = answerTo(exchange);
  if ('refusal' in answer) return fail(exchange, 400, answer.refusal, limits.export.headers());
  res.writeHead(200, { 'Content-Type': 'text/csv;charset=UTF-8', ...limits.export.headers() });
  for (const chunk of chunksOf(answer.lines)) {
    if (!res.write(chunk)) await once(res, 'drain', { signal: exchange.closed });
  }
  res.end();
}

/** Answers with a failure, its usual message, and the headers of the limit. */
function refuse(exchange: Exchange, status: number, retryAfterSeconds?: number): void {
  const headers = { ...exchange.service.limits.export.headers(), ...retryAfter(retryAfterSeconds) };
  fail(exchange, status, MESSAGES[status] ?? 'unknown_error', headers);
}

/** Reads an export body as the service would. */
function readExportRequest(body: unknown, service: SimulatedService): Refusal | { readonly query: RowQuery } {
  if (!isObject(body)) return INVALID;
  const { history_days, to_date_inclusive } = service.scenario;
  const now = service.clock.now();
  const today = dayAt(now, ZONE_HOURS);
  const events = readFilter(body.events, body.events_condition_type);
  const properties = readFilter(body.properties, body.properties_condition_type ?? 'all');
  const from = body.from_date;
  const to = body.to_date ?? today;
  if (events === undefined || properties === undefined) return INVALID;
  if (!isDate(from) || !isDate(to) || to < from) return INVALID;
  if (from < addDays(today, -history_days)) return { refusal: 'exceed_date_range_limit' };
  return { query: { from, last: to_date_inclusive ? to : addDays(to, -1), events, properties, now } };
}

/** The columns of an export of profiles; undefined if the request is not valid. */
function requestedColumns(body: JsonObject): readonly string[] | undefined {
  const properties = readFilter(body.properties, body.properties_condition_type);
  const identities = readFilter([], body.identities_condition_type ?? 'all');
  if (properties === undefined || identities === undefined) return undefined;
  const attributes = PROFILE_PROPERTIES.filter((name) => allows(properties, name));
  return ['df_unified_id', 'df_external_id', ...attributes].sort();
}

const isDate = (value: unknown): value is Day => typeof value === 'string' && isDay(value);

function readFilter(names: unknown, condition: unknown): NameFilter | undefined {
  const list: unknown = names ?? [];
  if (!Array.isArray(list) || !list.every((name) => typeof name === 'string')) return undefined;
  if (condition !== 'all' && condition !== 'include' && condition !== 'exclude') return undefined;
  return { condition: list.length === 0 ? 'all' : condition, names: new Set(list) };
}

const CHUNK_CHARS = 48 * 1024;

const csvCell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const lineOf = (cells: readonly string[]): string => `${cells.map(csvCell).join(',')}\n`;

/** The lines of an export of events, the header first. */
function* eventLines(dataset: Dataset, query: RowQuery): Generator<string> {
  const columns = dataset.header(query);
  yield lineOf(columns.map(({ name }) => name));
  for (const row of dataset.rows(query)) yield lineOf(columns.map((column) => dataset.cell(column, row)));
}

/** The lines of an export of profiles, with these columns. */
function* profileLines(dataset: Dataset, columns: readonly string[]): Generator<string> {
  yield lineOf(columns);
  for (const profile of dataset.profiles()) yield lineOf(columns.map((name) => profile[name] ?? ''));
}

/** Yields the bytes of lines that are generated on demand: one chunk of about 48 KiB at a time. */
function* chunksOf(lines: Iterable<string>): Generator<Buffer, void, undefined> {
  let pending = '';
  for (const line of lines) {
    pending += line;
    if (pending.length < CHUNK_CHARS) continue;
    yield Buffer.from(pending);
    pending = '';
  }
  yield Buffer.from(pending);
}
