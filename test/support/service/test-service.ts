// A service of exports over a truth that the test keeps: the rows of each day. It behaves and fails as a scenario says.
import { gzipSync } from 'node:zlib';
import { type Clock, HOUR_MS } from '../../../src/base/clock.ts';
import { addDays, type Day, dayAt, daysOf, isDay } from '../../../src/base/days.ts';
import { isObject, tryParseJson } from '../../../src/base/json.ts';
import { allows, cellText, Dataset, type NameFilter } from '../../../src/simulator/dataset.ts';
import { nameFilter } from '../../../src/simulator/export.ts';
import { SeededRandom } from '../seeded-random.ts';
import { quoted } from '../targets/csv.ts';
import { type Fault, type FaultRule, type Refusal, type RequestedExport, upTo } from './faults.ts';
import {
  CHUNKED,
  chunks,
  type FaultyServer,
  head,
  LAST_CHUNK,
  type RawRequest,
  type Step,
  startFaultyServer,
} from './faulty-server.ts';

/** The text of each cell that has one, by column name. */
type CellTexts = ReadonlyMap<string, string>;

/** A row that the service shows from an instant on, and up to another (ms UTC): late rows, rows that vanish. */
export interface TruthRow {
  readonly cells: CellTexts;
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
  format: {
    /** Another order each time. */
    shuffles_rows: false,
    framing: 'chunked' as 'chunked' | 'length',
    final_newline: true,
    gzip: false,
  },
  limits: {
    exports_per_hour: 100,
    concurrent_exports: 5,
    names_reset: true,
  },
  /** Exports that answer 500, by what they ask for and the rows that they have. */
  isTooBig: (_request: RequestedExport, _rows: number): boolean => false,
  fault: (() => undefined) as FaultRule,
};

interface OwnColumn {
  readonly name: string;
  readonly values: readonly string[];
  /** Where it has these values, in place of others of its name; undefined: everywhere. */
  readonly days?: readonly Day[];
}

export type Scenario = typeof DEFAULTS;
export type ScenarioPatch = {
  readonly [K in keyof Scenario]?: Scenario[K] extends (...all: never[]) => unknown
    ? Scenario[K]
    : Partial<Scenario[K]>;
};

export interface TestServiceOptions {
  readonly clock: Clock;
  readonly exportToken: string;
  readonly serviceId: string;
  readonly scenario?: ScenarioPatch;
  /** All rows of a day, past and future. Without it they are generated, about `rowsPerDay` events a day. */
  readonly truth?: (day: Day) => readonly TruthRow[];
  readonly rowsPerDay?: number;
}

/** A request and its answer. */
interface SeenRequest {
  /** Parsed JSON. */
  readonly body: unknown;
  status: number | undefined;
  fault: Fault['kind'] | undefined;
  /** How its answer ended, once it did. */
  end: 'sent' | 'closed by the client' | undefined;
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
const CSV_TYPE = 'text/csv;charset=UTF-8';
const EXPORT_PATH = '/api/v1/export/event';

export class TestService {
  readonly url: string;
  readonly #options: TestServiceOptions;
  readonly #server: FaultyServer;
  readonly #requests: SeenRequest[] = [];
  readonly #generated = new Map<Day, readonly TruthRow[]>();
  /** The hour of the limit, which begins with its first export. */
  readonly #hour = { began: 0, count: 0 };
  #running = 0;
  /** Exports since the rule of the faults was set. */
  #sinceRule = 0;
  #scenario: Scenario = DEFAULTS;

  private constructor(options: TestServiceOptions, server: FaultyServer) {
    this.#options = options;
    this.#server = server;
    this.url = server.url;
    this.setScenario(options.scenario ?? {});
  }

  static async start(options: TestServiceOptions): Promise<TestService> {
    const server = await startFaultyServer((request) => service.#answer(request));
    const service = new TestService(options, server);
    return service;
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  get scenario(): Scenario {
    return this.#scenario;
  }

  /** Replaces keys, section by section; a rule of faults counts exports from one. */
  setScenario(patch: ScenarioPatch): void {
    const sections = Object.entries(patch).map(([name, change]) => {
      if (!Object.hasOwn(DEFAULTS, name)) throw new Error(`no section ${name} in a scenario`);
      if (typeof change === 'function') return [name, change];
      const section = this.#scenario[name as keyof Scenario];
      for (const key of Object.keys(change)) {
        if (!Object.hasOwn(section, key)) throw new Error(`no key ${name}.${key} in a scenario`);
      }
      return [name, { ...section, ...change }];
    });
    this.#scenario = { ...this.#scenario, ...Object.fromEntries(sections) };
    if (patch.fault !== undefined) this.#sinceRule = 0;
    this.#generated.clear();
  }

  requests(): readonly SeenRequest[] {
    return this.#requests;
  }

  /** True while the answer of a stalled export is open. */
  get isStalled(): boolean {
    return this.#requests.some(({ fault, end }) => fault === 'stall' && end === undefined);
  }

  /** The rows of days, both included, that the service shows at an instant (now). */
  truth(days: Day | { readonly from: Day; readonly to: Day }, at = this.#options.clock.now()): CellTexts[] {
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
    const rows = this.#generated.get(day) ?? this.#generate(day);
    this.#generated.set(day, rows);
    return rows;
  }

  #generate(day: Day): TruthRow[] {
    const { rowsPerDay = 40, serviceId } = this.#options;
    const { columns } = this.#scenario;
    const dataset = new Dataset(serviceId, rowsPerDay);
    const filters = { eventFilter: EVERYTHING, propertyFilter: EVERYTHING };
    const query = { from: day, to: day, ...filters, now: Number.POSITIVE_INFINITY };
    const header = dataset.header(query);
    const out: TruthRow[] = [];
    for (const row of dataset.rows(query)) {
      const cells = new Map<string, string>();
      for (const column of header) {
        const text = cellText(column, row);
        if (text !== '') cells.set(column.name === 'event_name' ? columns.event_name : column.name, text);
      }
      for (const { name, values, days } of columns.own) {
        if (days !== undefined && !days.includes(day)) continue;
        const text = values[row.index % values.length];
        if (text) cells.set(name, text);
        else cells.delete(name);
      }
      out.push({ cells, from: row.receivedAt });
    }
    return out;
  }

  async #answer({ line, headers, body }: RawRequest): Promise<readonly Step[]> {
    const { pathname, searchParams } = new URL(line.split(' ')[1] ?? '', 'http://loopback');
    const seen: SeenRequest = { body: tryParseJson(body), status: undefined, fault: undefined, end: undefined };
    this.#requests.push(seen);
    const end = (isClosed: boolean) => {
      seen.end = isClosed ? 'closed by the client' : 'sent';
    };
    const { serviceId, exportToken } = this.#options;
    const isAllowed = searchParams.get('service_id') === serviceId && headers.authorization === `Bearer ${exportToken}`;
    if (pathname !== EXPORT_PATH) return [...this.#fail(seen, 404, 'not_found'), { end }];
    if (!isAllowed) return [...this.#fail(seen, 401, 'unauthorized_token'), { end }];
    return [...(await this.#limited(seen)), { end }];
  }

  #limited(seen: SeenRequest) {
    const { limits } = this.#scenario;
    if (this.#remaining() === 0 || this.#running >= limits.concurrent_exports)
      return this.#fail(seen, 429, 'too_many_api_requests');
    this.#hour.count++;
    this.#running++;
    const release = () => void this.#running--;
    return this.#export(seen).then((steps) => [...steps, { end: release }]);
  }

  /** Serves one export: what it asks for, fault, data, in that order. */
  async #export(seen: SeenRequest): Promise<readonly Step[]> {
    const request = this.#readExport(seen.body);
    if (typeof request === 'string') return this.#fail(seen, 400, request);
    const { days, fault: faultOf, isTooBig, format, columns } = this.#scenario;
    const { from, to, properties } = request;
    const fault = await faultOf(request, ++this.#sinceRule);
    seen.fault = fault?.kind;
    if (fault?.kind === 'refuse') return [{ reset: true }];
    if (fault?.kind === 'status') return this.#refuse(seen, fault);
    if (days.today !== undefined && from >= this.#today())
      return this.#fail(seen, days.today, TODAY[days.today] ?? 'unknown_error');
    const rows = this.#select(request, this.#lastOf(from, to));
    if (isTooBig(request, rows.length)) return this.#fail(seen, 500, 'query_error');
    if (rows.length === 0 && days.empty !== 'header' && fault === undefined) return this.#answerEmpty(seen);
    const text = csv(rows, properties, format.final_newline ? '\n' : '', columns.event_name);
    return this.#send(seen, text, fault);
  }

  /** The last day of which all rows are in the range; before `from` if there is none. */
  #lastOf(from: Day, to: Day): Day {
    const { single_days, to_date_inclusive, compares } = this.#scenario.days;
    const form = from === to ? single_days : 'as_ranges';
    const isIncluded = form === 'whole' || (form === 'as_ranges' && compares === 'days' && to_date_inclusive);
    return isIncluded ? to : addDays(to, -1);
  }

  #select({ from, to, events }: RequestedExport, last: Day): CellTexts[] {
    const { compares, single_days } = this.#scenario.days;
    const rows = this.truth({ from, to: last });
    if (compares === 'instants' && last < to && !(from === to && single_days === 'empty'))
      rows.push(...this.truth(to).filter(isAtMidnight));
    const selected = rows.filter((cells) =>
      allows(events, cells.get('event_name') ?? cells.get('df_event_name') ?? ''),
    );
    return this.#scenario.format.shuffles_rows ? shuffled(selected, this.#requests.length) : selected;
  }

  #answerEmpty(seen: SeenRequest): Step[] {
    const { empty } = this.#scenario.days;
    const type = empty === 'zero_bytes' ? CSV_TYPE : 'application/json';
    const body = empty === 'list' ? '[]' : '';
    const status = empty === '204' ? 204 : empty === '404' ? 404 : 200;
    return this.#whole(seen, status, body, { 'Content-Type': type });
  }

  #send(seen: SeenRequest, text: string, fault: Exclude<Fault, { kind: 'status' | 'refuse' }> | undefined): Step[] {
    const { format } = this.#scenario;
    let body: Buffer = Buffer.from(fault?.kind === 'body' ? fault.change(text) : text);
    if (fault?.kind === 'cut') body = upTo(body, fault);
    const isGzip = format.gzip || fault?.kind === 'gzip';
    const hasLength = !isGzip && (format.framing === 'length' || fault?.kind === 'wrong_length');
    const start = this.#head(seen, 200, {
      'Content-Type': CSV_TYPE,
      ...(isGzip && { 'Content-Encoding': 'gzip' }),
      ...(hasLength
        ? { 'Content-Length': String(body.length + (fault?.kind === 'wrong_length' ? MISSING_BYTES : 0)) }
        : { 'Transfer-Encoding': CHUNKED['Transfer-Encoding'] }),
    });
    const framed = (bytes: Buffer): Step => ({ send: hasLength ? bytes : chunks(bytes, 65_536) });
    if (fault?.kind === 'reset') return [start, framed(upTo(body, fault)), { reset: true }];
    if (fault?.kind === 'drop') return [start, framed(upTo(body, fault)), { close: true }];
    if (fault?.kind === 'stall') return [start, framed(upTo(body, fault)), { hold: true }];
    const sent = isGzip ? gzipSync(body, { level: 1 }) : body;
    const steps = [start, framed(fault?.kind === 'gzip' ? sent.subarray(0, -16) : sent)];
    if (fault?.kind === 'wrong_length') return [...steps, { close: true }];
    return hasLength ? steps : [...steps, { send: LAST_CHUNK }];
  }

  #readExport(body: unknown): RequestedExport | string {
    if (!isObject(body)) return 'invalid_parameter';
    const { days } = this.#scenario;
    const today = this.#today();
    const events = nameFilter(body.events, body.events_condition_type);
    const properties = nameFilter(body.properties, body.properties_condition_type ?? 'all');
    const from = body.from_date;
    const to = body.to_date ?? today;
    if (events === undefined || properties === undefined || !isDate(from) || !isDate(to) || to < from)
      return 'invalid_parameter';
    if (to > today && days.future !== 'empty')
      return days.future === 'error' ? 'invalid_parameter' : 'exceed_date_range_limit';
    if (from < addDays(today, -days.history_days)) return 'exceed_date_range_limit';
    if (from === to && days.single_days === 'error') return 'invalid_parameter';
    return { from, to, events, properties };
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

  #fail(seen: SeenRequest, status: number, message: string): Step[] {
    return this.#refuse(seen, { status, message });
  }

  #refuse(seen: SeenRequest, { status, message, body = `<h1>${status}</h1>`, headers }: Omit<Refusal, 'kind'>): Step[] {
    if (message === undefined) return this.#whole(seen, status, body, { 'Content-Type': 'text/html', ...headers });
    const failure = JSON.stringify({ result: 'fail', message });
    return this.#whole(seen, status, failure, { 'Content-Type': 'application/json', ...headers });
  }

  #whole(
    seen: SeenRequest,
    status: number,
    body: string,
    headers: Readonly<Record<string, string | undefined>>,
  ): Step[] {
    const length = status === 204 ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
    return [this.#head(seen, status, { ...length, ...headers }), { send: body }];
  }

  #head(seen: SeenRequest, status: number, headers: Readonly<Record<string, string | undefined>>): Step {
    seen.status = status;
    return {
      send: head(status, {
        Date: new Date(this.#options.clock.now()).toUTCString(),
        'x-ratelimit-limit': '1h',
        'x-ratelimit-remaining': this.#remaining(),
        ...(this.#scenario.limits.names_reset && { 'x-ratelimit-reset': this.#hour.began + HOUR_MS }),
        ...headers,
      }),
    };
  }
}

/** Bytes by which a wrong length is off. */
const MISSING_BYTES = 50;
const TODAY: Readonly<Record<number, string>> = { 400: 'exceed_date_range_limit', 404: 'not_found' };

const isDate = (value: unknown): value is Day => typeof value === 'string' && isDay(value);

const isAtMidnight = (cells: CellTexts): boolean =>
  /[ T]0?0:00(:00(\.0+)?)?$/.test(cells.get('df_server_datetime') ?? '');

function shuffled<T>(values: readonly T[], seed: number): T[] {
  const random = new SeededRandom(seed);
  return values
    .map((value) => ({ value, at: random.unit() }))
    .sort((a, b) => a.at - b.at)
    .map(({ value }) => value);
}

/** Rows as the service writes them: columns with a value and those of the system, by name. */
function csv(rows: readonly CellTexts[], properties: NameFilter, end: '\n' | '', eventName: string): string {
  const system = new Set([...SYSTEM, rows.some((cells) => cells.has('df_event_name')) ? 'df_event_name' : eventName]);
  const names = new Set(
    rows.flatMap((cells) => [...cells.keys()]).filter((name) => system.has(name) || allows(properties, name)),
  );
  const header = [...new Set([...system, ...names])].sort((a, b) => (a < b ? -1 : 1));
  const lines = rows.map((cells) => header.map((name) => quoted(cells.get(name) ?? '')).join(','));
  return `${[header.map(quoted).join(','), ...lines].join('\n')}${end}`;
}
