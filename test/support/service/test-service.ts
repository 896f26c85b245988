// A service of exports over a truth that the test keeps: the rows of each day. It behaves and fails as a scenario says.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import type { Clock } from '../../../src/base/clock.ts';
import { addDays, type Day, dayAt, daysBetween, daysOf, isDay } from '../../../src/base/days.ts';
import { isObject, tryParseJson } from '../../../src/base/json.ts';
import { allows, cellText, Dataset, type NameFilter } from '../../../src/simulator/dataset.ts';
import { eventCount } from '../../../src/simulator/events.ts';
import { nameFilter } from '../../../src/simulator/export.ts';
import { SeededRandom } from '../seeded-random.ts';
import { FAILED, type Fault, faultRules, generated, sendBody } from './faults.ts';

/** The text of each cell that has one, by column name. */
export type Cells = ReadonlyMap<string, string>;

/** A row that the service shows from an instant on, and up to another (ms UTC): late rows, rows that vanish. */
export interface TruthRow {
  readonly cells: Cells;
  readonly from?: number;
  readonly until?: number;
}

const DEFAULTS = {
  days: {
    /** Whether a range of days includes `to_date`. */
    to_date_inclusive: true,
    /** What `from_date` = `to_date` gives; `error`: 400. */
    single_days: 'as_ranges' as 'as_ranges' | 'whole' | 'empty' | 'error',
    /** `instants`: a range ends at the midnight that begins `to_date`; rows of that very instant are in it. */
    compares: 'days' as 'days' | 'instants',
    /** Hours ahead of UTC where today begins. */
    zone_hours: 9,
    /** The status of the answer to today and later days; undefined: like other days. */
    today: undefined as number | undefined,
    /** A `to_date` in the future: answered, or refused with 400. */
    future: 'empty' as 'empty' | 'error' | 'limit',
    history_days: 30,
    /** The answer without rows: a header alone, nothing, 204, 404, or `[]`. */
    empty: 'header' as 'header' | 'zero_bytes' | '204' | '404' | 'list',
  },
  /** Of generated rows: own columns, with values in turn. */
  columns: { event_name: 'event_name' as 'event_name' | 'df_event_name', own: [] as readonly OwnColumn[] },
  rows: {
    by_day: {} as Readonly<Record<Day, number>>,
    /** `shuffled`: another order each time. */
    order: 'time' as 'time' | 'shuffled',
  },
  format: {
    framing: 'chunked' as 'chunked' | 'length',
    final_newline: true,
    gzip: false,
    content_type: 'text/csv;charset=UTF-8',
  },
  limits: {
    exports_per_hour: 100,
    concurrent_exports: 5,
    headers: 'x-ratelimit' as 'x-ratelimit' | 'X-Rate-Limit',
    reset: 'ms' as 'ms' | 's' | 'absent',
  },
  answers: {
    unknown_service: '401' as '401' | '400',
    known_events_only: false,
  },
  /** Exports of these days, and longer ones, answer 500, unless they are divided by event names. */
  too_big: {
    days: [] as readonly Day[],
    longest_days: Number.POSITIVE_INFINITY,
  },
  faults: [] as readonly Fault[],
};

interface OwnColumn {
  readonly name: string;
  readonly values: readonly string[];
  readonly per?: 'row' | 'day';
  readonly days?: readonly Day[];
}

export type Scenario = typeof DEFAULTS;
export type ScenarioPatch = {
  readonly [K in keyof Scenario]?: Scenario[K] extends readonly unknown[] ? Scenario[K] : Partial<Scenario[K]>;
};

export interface TestServiceOptions {
  readonly clock: Clock;
  readonly exportToken: string;
  readonly serviceId: string;
  readonly port?: number;
  readonly scenario?: ScenarioPatch;
  readonly latencyMs?: number;
  /** All rows of a day, past and future. Without it they are generated, about `rowsPerDay` events a day. */
  readonly truth?: (day: Day) => readonly TruthRow[];
  readonly rowsPerDay?: number;
  /** The CSV of days as it is sent, unchanged; undefined: they have no rows. */
  readonly bodyOf?: (from: Day, last: Day) => AsyncIterable<Buffer> | undefined;
}

/** A request and its answer. */
export interface SeenRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** Parsed JSON, or text. */
  body: unknown;
  status: number | undefined;
  /** `ok`, the message or code of a failure, `fault:KIND`, or `closed` if the client closed the connection first. */
  outcome: string | undefined;
  fault: Fault['kind'] | undefined;
  done: boolean;
}

interface Exchange {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly seen: SeenRequest;
  readonly closed: AbortSignal;
}

const SYSTEM = [
  'df_api_version',
  'df_correction_datetime',
  'df_event_detail_log_id',
  'df_event_log_id',
  'df_server_datetime',
  'df_unified_id',
];
const EVERYTHING: NameFilter = { condition: 'all', names: new Set() };
const EXPORT_PATH = '/api/v1/export/event';
const HOUR_MS = 3_600_000;

export class TestService {
  readonly url: string;
  readonly port: number;
  readonly #options: TestServiceOptions;
  readonly #server: ReturnType<typeof createServer>;
  readonly #requests: SeenRequest[] = [];
  readonly #generated = new Map<Day, readonly TruthRow[]>();
  /** The hour of the limit, which begins with its first export. */
  readonly #hour = { began: 0, count: 0 };
  #running = 0;
  #token: string;
  #scenario: Scenario = DEFAULTS;
  #faultOf = faultRules([]);

  private constructor(options: TestServiceOptions, server: ReturnType<typeof createServer>) {
    this.#options = options;
    this.#server = server;
    this.#token = options.exportToken;
    this.port = (server.address() as AddressInfo).port;
    this.url = `http://127.0.0.1:${this.port}`;
    this.setScenario(options.scenario ?? {});
    server.on('request', (req, res) => void this.#serve(req, res));
  }

  static async start(options: TestServiceOptions): Promise<TestService> {
    const server = createServer({ keepAliveTimeout: 5_000 });
    await new Promise<void>((resolve) => server.listen(options.port ?? 0, '127.0.0.1', resolve));
    return new TestService(options, server);
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  get scenario(): Scenario {
    return this.#scenario;
  }

  /** Replaces keys, section by section; new `faults` replace all of them and start counting requests at zero. */
  setScenario(patch: { readonly [K in keyof Scenario]?: object }): void {
    const sections = Object.entries(patch).map(([name, change]) => {
      if (!Object.hasOwn(DEFAULTS, name)) throw new Error(`no section ${name} in a scenario`);
      const section = this.#scenario[name as keyof Scenario];
      for (const key of isObject(change) ? Object.keys(change) : []) {
        if (!Object.hasOwn(section, key)) throw new Error(`no key ${name}.${key} in a scenario`);
      }
      return [name, Array.isArray(change) ? change : { ...section, ...change }];
    });
    this.#scenario = { ...this.#scenario, ...Object.fromEntries(sections) };
    if (patch.faults !== undefined) this.#faultOf = faultRules(this.#scenario.faults);
    this.#generated.clear();
  }

  /** Reissues the token: the old one no longer works. */
  setToken(token: string): void {
    this.#token = token;
  }

  requests(): readonly SeenRequest[] {
    return this.#requests;
  }

  /** The rows of days, both included, that the service shows at an instant (now). */
  truth(days: Day | { readonly from: Day; readonly to: Day }, at = this.#options.clock.now()): Cells[] {
    const [from, to] = typeof days === 'string' ? [days, days] : [days.from, days.to];
    return daysOf(from, to)
      .flatMap((day) => this.#rowsOf(day))
      .filter(({ from = 0, until = Number.POSITIVE_INFINITY }) => from <= at && at < until)
      .map(({ cells }) => cells);
  }

  countRows(days: Day | { readonly from: Day; readonly to: Day }, at?: number): number {
    return this.truth(days, at).length;
  }

  #rowsOf(day: Day): readonly TruthRow[] {
    if (this.#options.truth !== undefined) return this.#options.truth(day);
    const known = this.#generated.get(day) ?? this.#generate(day);
    this.#generated.set(day, known);
    return known;
  }

  #generate(day: Day): TruthRow[] {
    const { rowsPerDay = 40, serviceId } = this.#options;
    const { columns, rows } = this.#scenario;
    const dataset = new Dataset(serviceId, (day) => rows.by_day[day] ?? eventCount(day, rowsPerDay));
    const query = { from: day, to: day, events: EVERYTHING, properties: EVERYTHING, now: Number.POSITIVE_INFINITY };
    const header = dataset.header(query);
    const number = Date.parse(day) / 86_400_000;
    const out: TruthRow[] = [];
    for (const row of dataset.rows(query)) {
      const cells = new Map<string, string>();
      for (const column of header) {
        const text = cellText(column, row);
        if (text !== '') cells.set(column.name === 'event_name' ? columns.event_name : column.name, text);
      }
      for (const { name, values, per, days } of columns.own) {
        const text = values[(per === 'day' ? number : row.index) % values.length];
        cells.delete(name);
        if (text && (days === undefined || days.includes(day))) cells.set(name, text);
      }
      out.push({ cells, from: row.receivedAt });
    }
    return out;
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(req.url ?? '/', 'http://loopback');
    const over = new AbortController();
    const seen: SeenRequest = {
      path: pathname,
      query: Object.fromEntries(searchParams),
      body: undefined,
      status: undefined,
      outcome: undefined,
      fault: undefined,
      done: false,
    };
    this.#requests.push(seen);
    res.once('close', () => {
      over.abort();
      if (!res.writableFinished) seen.outcome = seen.fault ? (seen.outcome ?? `fault:${seen.fault}`) : 'closed';
      seen.done = true;
    });
    res.on('error', () => over.abort());
    const exchange = { req, res, seen, closed: over.signal };
    try {
      const chunks: Buffer[] = [];
      for await (const chunk of req as AsyncIterable<Buffer>) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString('utf8');
      seen.body = tryParseJson(text) ?? text;
      const { latencyMs = 0, clock } = this.#options;
      if (latencyMs > 0) await clock.sleep(latencyMs, over.signal);
      if (pathname === EXPORT_PATH) await this.#export(exchange);
      else this.#fail(exchange, 404, 'not_found');
    } catch (error) {
      if (over.signal.aborted) return;
      // A defect of the test must never look like an answer of the service.
      seen.outcome = `defect: ${error}`;
      res.destroy();
    }
  }

  /** Serves one export: token, service, limits, body, fault, data, in that order. */
  async #export(exchange: Exchange): Promise<void> {
    const { res, req, seen } = exchange;
    const { answers, limits, days } = this.#scenario;
    const isKnown = seen.query.service_id === this.#options.serviceId;
    const isToken = req.headers.authorization === `Bearer ${this.#token}`;
    if (!isToken || (!isKnown && answers.unknown_service === '401'))
      return this.#fail(exchange, 401, 'unauthorized_token');
    if (!isKnown) return this.#fail(exchange, 400, 'invalid_parameter');
    if (this.#remaining() === 0) return this.#refuse(exchange, 'hourly_limit');
    if (this.#running >= limits.concurrent_exports) return this.#refuse(exchange, 'concurrent_limit');
    this.#hour.count++;
    this.#running++;
    res.once('close', () => this.#running--);
    const request = this.#readExport(seen.body);
    if (typeof request === 'string') return this.#fail(exchange, 400, request);
    const { from, to, properties } = request;
    const fault = this.#faultOf({ from, to });
    seen.fault = fault?.kind;
    if (fault !== undefined && (await this.#failInstead(exchange, fault))) return;
    if (days.today !== undefined && from >= this.#today())
      return this.#fail(exchange, days.today, TODAY[days.today] ?? 'unknown_error');
    const last = this.#lastOf(from, to);
    if (this.#options.bodyOf !== undefined) {
      const body = this.#options.bodyOf(from, last) ?? [Buffer.from(csv([], properties, '\n', 'event_name'))];
      return this.#send(exchange, Buffer.concat(await Readable.from(body).toArray()), fault);
    }
    if (this.#isTooBig(request, last)) return this.#fail(exchange, 500, 'query_error');
    const rows = this.#select(request, last);
    if (rows.length === 0 && days.empty !== 'header') return this.#answerEmpty(exchange);
    const { format, columns } = this.#scenario;
    const text = csv(rows, properties, format.final_newline ? '\n' : '', columns.event_name);
    return this.#send(exchange, Buffer.from(text), fault);
  }

  #isTooBig({ from, events }: ExportRequest, last: Day): boolean {
    const { days, longest_days } = this.#scenario.too_big;
    if (events.condition !== 'all') return false;
    return daysBetween(from, last) >= longest_days || days.some((day) => day >= from && day <= last);
  }

  /** The last day of which all rows are in the range; before `from` if there is none. */
  #lastOf(from: Day, to: Day): Day {
    const { single_days, to_date_inclusive, compares } = this.#scenario.days;
    const form = from === to ? single_days : 'as_ranges';
    const isIncluded = form === 'whole' || (form === 'as_ranges' && compares === 'days' && to_date_inclusive);
    return isIncluded ? to : addDays(to, -1);
  }

  #select({ from, to, events }: ExportRequest, last: Day): Cells[] {
    const { compares, single_days } = this.#scenario.days;
    const rows = this.truth({ from, to: last });
    if (compares === 'instants' && last < to && !(from === to && single_days === 'empty'))
      rows.push(...this.truth(to).filter(isAtMidnight));
    const { order } = this.#scenario.rows;
    const selected = rows.filter((cells) =>
      allows(events, cells.get('event_name') ?? cells.get('df_event_name') ?? ''),
    );
    return order === 'shuffled' ? shuffled(selected, this.#requests.length) : selected;
  }

  #answerEmpty(exchange: Exchange): void {
    const { empty } = this.#scenario.days;
    exchange.seen.outcome = `empty:${empty}`;
    const type = empty === 'zero_bytes' ? this.#scenario.format.content_type : 'application/json';
    const body = empty === 'list' ? '[]' : '';
    const status = empty === '204' ? 204 : empty === '404' ? 404 : 200;
    this.#answer(exchange, status, body, { 'Content-Type': type });
  }

  async #send(exchange: Exchange, text: Buffer, fault: Fault | undefined): Promise<void> {
    const { res, seen, closed } = exchange;
    const { format } = this.#scenario;
    seen.outcome = fault ? `fault:${fault.kind}` : 'ok';
    if (fault?.kind === 'json_200') return this.#answer(exchange, 200, FAILED, { 'Content-Type': 'application/json' });
    const body = generated(text, fault);
    const isGzip = format.gzip || fault?.kind === 'gzip';
    const hasLength = !isGzip && (format.framing === 'length' || fault?.kind === 'wrong_length');
    this.#head(exchange, 200, {
      'Content-Type': format.content_type,
      ...(isGzip && { 'Content-Encoding': 'gzip' }),
      ...(hasLength && { 'Content-Length': String(body.length + (fault?.kind === 'wrong_length' ? fault.by : 0)) }),
    });
    const sent = isGzip ? gzipSync(body, { level: 1 }) : body;
    await sendBody(res, closed, fault?.kind === 'gzip' ? sent.subarray(0, -16) : sent, fault);
  }

  #readExport(body: unknown): ExportRequest | string {
    if (!isObject(body)) return 'invalid_parameter';
    const { days, answers } = this.#scenario;
    const today = this.#today();
    const events = nameFilter(body.events, body.events_condition_type);
    const properties = nameFilter(body.properties, body.properties_condition_type ?? 'all');
    const from = body.from_date;
    const to = body.to_date ?? today;
    if (events === undefined || properties === undefined || !isDate(from) || !isDate(to) || to < from)
      return 'invalid_parameter';
    if (answers.known_events_only && [...events.names].some((name) => !name.startsWith('df_')))
      return 'invalid_parameter';
    if (to > today && days.future !== 'empty')
      return days.future === 'error' ? 'invalid_parameter' : 'exceed_date_range_limit';
    if (from < addDays(today, -days.history_days)) return 'exceed_date_range_limit';
    if (from === to && days.single_days === 'error') return 'invalid_parameter';
    return { from, to, events, properties };
  }

  /** Answers with a fault in place of data; false if the fault is one of the body. */
  async #failInstead(exchange: Exchange, fault: Fault): Promise<boolean> {
    const { res, seen } = exchange;
    if (fault.kind === 'status') {
      const { status, body, content_type = 'text/html', retry_after_s } = fault;
      seen.outcome = `HTTP ${status}`;
      const retryAfter = retry_after_s === undefined ? {} : { 'Retry-After': String(retry_after_s) };
      if (body === undefined && status === 500) this.#fail(exchange, 500, 'unknown_error', retryAfter);
      else
        this.#answer(exchange, status, body ?? `<html><h1>${status}</h1></html>`, {
          'Content-Type': content_type,
          ...retryAfter,
        });
    } else if (fault.kind === 'rate_limit') {
      const { remaining = 0, reset_in_s = 60 } = fault;
      seen.outcome = 'rate_limit';
      const resetAt = reset_in_s === null ? undefined : this.#options.clock.now() + reset_in_s * 1_000;
      this.#fail(exchange, 429, 'too_many_api_requests', this.#limitHeaders({ remaining, resetAt }));
    } else if (fault.kind === 'refuse') res.socket?.resetAndDestroy();
    else return false;
    return true;
  }

  #refuse(exchange: Exchange, outcome: string): void {
    exchange.seen.outcome = outcome;
    this.#fail(exchange, 429, 'too_many_api_requests');
  }

  #today(): Day {
    return dayAt(this.#options.clock.now(), this.#scenario.days.zone_hours);
  }

  /** How many exports are left in this hour. */
  #remaining(): number {
    const now = this.#options.clock.now();
    if (now >= this.#hour.began + HOUR_MS) Object.assign(this.#hour, { began: now, count: 0 });
    return Math.max(0, this.#scenario.limits.exports_per_hour - this.#hour.count);
  }

  #limitHeaders(refusal?: { remaining: number; resetAt: number | undefined }) {
    const { headers, reset } = this.#scenario.limits;
    const { remaining = this.#remaining() } = refusal ?? {};
    const resetAt = refusal === undefined ? this.#hour.began + HOUR_MS : refusal.resetAt;
    const isUpper = headers === 'X-Rate-Limit';
    const name = (part: string) => (isUpper ? `X-Rate-Limit-${part}` : `x-ratelimit-${part.toLowerCase()}`);
    const at =
      resetAt === undefined || reset === 'absent'
        ? undefined
        : reset === 's'
          ? Math.ceil(resetAt / 1_000)
          : Math.round(resetAt);
    return {
      [name('Limit')]: isUpper ? '1H' : '1h',
      [name('Remaining')]: String(remaining),
      ...(at !== undefined && { [name('Reset')]: String(at) }),
    };
  }

  #fail(exchange: Exchange, status: number, message: string, headers: Record<string, string> = {}): void {
    exchange.seen.outcome ??= message;
    this.#answer(exchange, status, JSON.stringify({ result: 'fail', message }), {
      'Content-Type': 'application/json',
      ...headers,
    });
  }

  #answer(exchange: Exchange, status: number, body: string, headers: Record<string, string>): void {
    const bytes = Buffer.from(body);
    this.#head(exchange, status, { ...(status !== 204 && { 'Content-Length': String(bytes.length) }), ...headers });
    exchange.res.end(bytes);
  }

  #head({ res, seen }: Exchange, status: number, headers: Record<string, string>): void {
    seen.status = status;
    res.sendDate = false;
    const date = new Date(this.#options.clock.now()).toUTCString();
    const limits = seen.path === EXPORT_PATH ? this.#limitHeaders() : {};
    res.writeHead(status, { Date: date, ...limits, ...headers });
  }
}

const TODAY: Readonly<Record<number, string>> = { 400: 'exceed_date_range_limit', 404: 'not_found' };

interface ExportRequest {
  readonly from: Day;
  readonly to: Day;
  readonly events: NameFilter;
  readonly properties: NameFilter;
}

const isDate = (value: unknown): value is Day => typeof value === 'string' && isDay(value);

const isAtMidnight = (cells: Cells): boolean => /[ T]0?0:00(:00(\.0+)?)?$/.test(cells.get('df_server_datetime') ?? '');

function shuffled<T>(values: readonly T[], seed: number): T[] {
  const random = new SeededRandom(seed);
  return values
    .map((value) => ({ value, at: random.unit() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

/** Rows as the service writes them: columns with a value and those of the system, by name. */
function csv(rows: readonly Cells[], properties: NameFilter, end: '\n' | '', eventName: string): string {
  const system = new Set([...SYSTEM, rows.some((cells) => cells.has('df_event_name')) ? 'df_event_name' : eventName]);
  const names = new Set(
    rows.flatMap((cells) => [...cells.keys()]).filter((name) => system.has(name) || allows(properties, name)),
  );
  const header = [...new Set([...system, ...names])].sort((a, b) => (a < b ? -1 : 1));
  const lines = rows.map((cells) => header.map((name) => quoted(cells.get(name) ?? '')).join(','));
  return `${[header.map(quoted).join(','), ...lines].join('\n')}${end}`;
}
