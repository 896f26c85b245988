import { createHmac } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Day } from '../../src/base/days.ts';
import { LeapingClock } from './clock.ts';
import { newFolder } from './new-folder.ts';
import { runHere } from './processes/command-line.ts';
import type { FaultRule } from './service/faults.ts';
import { SERVICE_ID, startTestService, TOKENS } from './service/start-service.ts';
import type { TestService } from './service/test-service.ts';
import { type Cells, csvOf } from './targets/csv.ts';

export const HASH_KEY = 'a hash key of at least 32 characters';
export const hmac = (value: string, key = HASH_KEY) => createHmac('sha256', key).update(value).digest('hex');

/** The lists that most tests use: a custom column goes, a person's id, a mail address and the row's id are hashed. */
export const LISTS = {
  columns_drop: ['phone'],
  columns_hash: ['df_unified_id', 'email', 'df_event_detail_log_id'],
  hash_key: HASH_KEY,
} as const;

const DAY = '2026-01-15';

/** One marked row: every value of it that the lists keep out holds the word `marked`. */
export const person = (n: number, more: Cells = {}): Cells => ({
  id: `marked-row-${n}`,
  df_event_log_id: `log-${n}`,
  df_unified_id: `marked-person-${n}`,
  email: `marked-${n}@example.com`,
  phone: `+82 marked ${n}`,
  plan: n % 2 === 0 ? 'basic' : 'pro',
  df_server_datetime: `${DAY} ${String(n % 24).padStart(2, '0')}:00:00.000`,
  df_correction_datetime: `${DAY} ${String(n % 24).padStart(2, '0')}:00:00.000`,
  ...more,
});

export interface Said {
  readonly code: number;
  readonly result: string;
  readonly said: string;
}

/** The commands, in this process, and a service that gives out prepared files. */
export class PrivacyFixture {
  readonly dir = newFolder();
  readonly clock: LeapingClock;
  readonly #sim: TestService;
  /** Called with each export, before it is answered. */
  onExport = () => {};
  /** The bodies of the days. */
  readonly #served = new Map<Day, string>();

  private constructor(sim: TestService, clock: LeapingClock) {
    this.#sim = sim;
    this.clock = clock;
  }

  static async start(): Promise<PrivacyFixture> {
    const clock = new LeapingClock();
    const fault: FaultRule = ({ from, to }) => {
      fixture.onExport();
      const texts = [...fixture.#served].filter(([day]) => day >= from && day <= to).map(([, text]) => text);
      const [first = '', ...others] = texts;
      const rows = others.map((text) => text.slice(text.indexOf('\n') + 1));
      return texts.length === 0 ? undefined : { kind: 'body', change: () => [first, ...rows].join('') };
    };
    const sim = await startTestService({ fault }, { clock, truth: () => [] });
    const fixture = new PrivacyFixture(sim, clock);
    return fixture;
  }

  serve(rows: readonly Cells[] | string, day = DAY): void {
    this.#served.set(day, typeof rows === 'string' ? rows : csvOf(rows));
  }

  get url(): string {
    return this.#sim.url;
  }

  at(name: string): string {
    return join(this.dir, name);
  }

  config(more: object = LISTS): string {
    mkdirSync(this.at('spool'), { recursive: true });
    const path = this.at('dfinery.json');
    const basic = { base_url: this.#sim.url, service_id: SERVICE_ID, export_token: TOKENS.export };
    const days = { start_date: DAY, end_date: DAY, to_date_inclusive: 'true', spool_dir: this.at('spool') };
    writeFileSync(path, JSON.stringify({ ...basic, ...days, ...more }));
    return path;
  }

  async run(argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Said> {
    const { code, stdout, stderr } = await runHere(argv, { env, clock: this.clock, columns: 200 });
    return { code, result: stdout.trimEnd(), said: stderr.trimEnd() };
  }

  /** `sync duckdb` into `events.duckdb`, or another target, at the most talkative level. */
  sync(lists: object = LISTS, target: readonly string[] = ['duckdb', this.at('events.duckdb')], ...more: string[]) {
    return this.run(['sync', ...target, '--config', this.config(lists), '--log-level', 'debug', ...more]);
  }

  /** Files below the folder whose bytes hold a text; the configuration itself left out. */
  holding(text: string): string[] {
    const names = readdirSync(this.dir, { recursive: true, withFileTypes: true });
    const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    return files.filter((file) => file !== this.at('dfinery.json') && readFileSync(file).includes(text));
  }

  close(): Promise<void> {
    return this.#sim.close();
  }
}
