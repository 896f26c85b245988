import { pipeline } from 'node:stream/promises';
import { addDays, type Day, dayAt, earlierOf, isDay } from '../base/days.ts';
import { isObject } from '../base/json.ts';
import { allows, cellText, type Dataset, type NameFilter, type RowQuery } from './dataset.ts';
import { ZONE_HOURS } from './events.ts';
import { PROFILE_PROPERTIES } from './people.ts';
import { answerFailure, type Exchange, retryAfterHeader, type SimulatedService } from './service.ts';

/** How many days back a day can be exported. */
const HISTORY_DAYS = 30;

const MESSAGES: Readonly<Record<number, string>> = {
  400: 'invalid_parameter',
  401: 'unauthorized_token',
  429: 'too_many_api_requests',
};

/** A request that the service answers with 400. */
class BadRequest extends Error {}

const invalidParameter = () => new BadRequest(MESSAGES[400]);

export const serveExport = (exchange: Exchange): Promise<void> =>
  serveCsv(exchange, 'export', ({ service, body }) => eventLines(service.dataset, readQuery(body, service)));

/** Serves an export of profiles, which counts against the same limit. */
export const serveProfiles = (exchange: Exchange): Promise<void> =>
  serveCsv(exchange, 'profiles', ({ service, body }) => profileLines(service.dataset, readColumns(body)));

/** Serves an export: token, service, limit, planned answer, body, data. `makeLines` may throw a BadRequest. */
async function serveCsv(
  exchange: Exchange,
  operation: 'export' | 'profiles',
  makeLines: (exchange: Exchange) => Iterable<string>,
): Promise<void> {
  const { service, res, req } = exchange;
  const hasToken = req.headers.authorization === `Bearer ${service.scenario.export_token}`;
  if (!hasToken || exchange.serviceId !== service.scenario.service_id)
    return answerFailure(exchange, 401, MESSAGES[401]);
  if (!service.tryCountExport()) return refuse(exchange, 429);
  const { status, retry_after_s } = await service.awaitPlannedAnswer(operation, exchange.signal);
  if (status !== undefined) return refuse(exchange, status, retry_after_s);
  let lines: Iterable<string>;
  try {
    lines = makeLines(exchange);
  } catch (error) {
    if (!(error instanceof BadRequest)) throw error;
    return answerFailure(exchange, 400, error.message, service.limitHeaders());
  }
  res.writeHead(200, { 'Content-Type': 'text/csv;charset=UTF-8', ...service.limitHeaders() });
  await pipeline(chunksOf(lines), res);
}

/** Answers with a failure, its usual message, and the headers of the limit. */
function refuse(exchange: Exchange, status: number, retryAfterSeconds?: number): void {
  const headers = { ...exchange.service.limitHeaders(), ...retryAfterHeader(retryAfterSeconds) };
  answerFailure(exchange, status, MESSAGES[status] ?? 'unknown_error', headers);
}

/** Reads the body of an export of events as the service would. Throws a BadRequest. */
function readQuery(body: unknown, { clock }: SimulatedService): RowQuery {
  if (!isObject(body)) throw invalidParameter();
  const now = clock.now();
  const today = dayAt(now, ZONE_HOURS);
  const eventFilter = nameFilter(body.events, body.events_condition_type);
  const propertyFilter = nameFilter(body.properties, body.properties_condition_type ?? 'all');
  const { from_date: from, to_date: to = today } = body;
  if (eventFilter === undefined || propertyFilter === undefined) throw invalidParameter();
  if (!isDate(from) || !isDate(to) || to < from) throw invalidParameter();
  if (from < addDays(today, -HISTORY_DAYS)) throw new BadRequest('exceed_date_range_limit');
  return { from, to: earlierOf(to, today), eventFilter, propertyFilter, now };
}

/** The columns that the body of an export of profiles asks for. Throws a BadRequest. */
function readColumns(body: unknown): readonly string[] {
  if (!isObject(body)) throw invalidParameter();
  const propertyFilter = nameFilter(body.properties, body.properties_condition_type);
  if (propertyFilter === undefined || !isCondition(body.identities_condition_type ?? 'all')) throw invalidParameter();
  const attributes = PROFILE_PROPERTIES.filter((name) => allows(propertyFilter, name));
  return ['df_unified_id', 'df_external_id', ...attributes].sort();
}

const isDate = (value: unknown): value is Day => typeof value === 'string' && isDay(value);

const isCondition = (value: unknown): value is NameFilter['condition'] =>
  value === 'all' || value === 'include' || value === 'exclude';

/** Parses the names and the condition of a filter; an empty list allows all. Undefined for anything else. */
export function nameFilter(names: unknown, condition: unknown): NameFilter | undefined {
  const list: unknown = names ?? [];
  if (!Array.isArray(list) || !list.every((name) => typeof name === 'string')) return undefined;
  if (!isCondition(condition)) return undefined;
  return { condition: list.length === 0 ? 'all' : condition, names: new Set(list) };
}

const CHUNK_CHARS = 48 * 1024;

const csvCell = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

const lineOf = (cells: readonly string[]): string => `${cells.map(csvCell).join(',')}\n`;

/** The lines of an export of events, the header first. */
function* eventLines(dataset: Dataset, query: RowQuery): Generator<string> {
  const columns = dataset.header(query);
  yield lineOf(columns.map(({ name }) => name));
  for (const row of dataset.rows(query)) yield lineOf(columns.map((column) => cellText(column, row)));
}

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
