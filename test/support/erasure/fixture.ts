import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { dirname } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { ErasureReport } from '../../../src/erasure/erasure-report.ts';
import type { Json } from '../airbyte/connector.ts';
import { PrivacyFixture, type Said } from '../privacy.ts';
import { SERVICE_ID, TOKENS } from '../service/simulator.ts';
import type { Cells } from '../targets/csv.ts';
import { type Answer, type DeletionServer, json, SUCCESS, startDeletionServer } from './deletions.ts';

const SUPPRESSION_KEY = 'a suppression key of 32 characters';
export const PLACES = ['duckdb events.duckdb', 'parquet lake', 'delta delta'] as const;

type Report = ErasureReport & { readonly exit: number; readonly error: string | null };

/** An event of a person; every text of it that is about the person holds the word `marked`. */
export const event = (member: string, n = 1, more: Cells = {}): Cells => ({
  id: `marked-row-${member}-${n}`,
  df_event_log_id: `marked-log-${member}-${n}`,
  df_unified_id: `marked-u-${member}`,
  member,
  df_server_datetime: `2026-01-15 0${n}:00:00.000`,
  df_correction_datetime: `2026-01-15 0${n}:00:00.000`,
  ...more,
});

/** A service whose answers to deletions a test decides, a folder with places, and the commands on it. */
export class ErasureCase {
  readonly fixture: PrivacyFixture;
  readonly server: DeletionServer;
  answer: Answer = (_, response) => json(response, SUCCESS);
  /** How the export of profiles is answered; it is asked once `profiles` was called. */
  answerProfiles: (response: ServerResponse) => void = (response) => json(response, { result: 'fail' }, 404);
  #searchesProfiles = false;
  env: Record<string, string> = { DFINERY_SUPPRESSION_KEY: SUPPRESSION_KEY, DFINERY_IMPORT_TOKEN: TOKENS.import };

  private constructor(fixture: PrivacyFixture, server: DeletionServer) {
    this.fixture = fixture;
    this.server = server;
  }

  static async start(): Promise<ErasureCase> {
    const fixture = await PrivacyFixture.start();
    let own: ErasureCase | undefined;
    const server = await startDeletionServer((deletion, response, nth) => {
      if (deletion.url.startsWith('/api/v1/export/userprofile')) return own?.answerProfiles(response);
      if (!deletion.url.startsWith('/api/v1/export/')) return own?.answer(deletion, response, nth);
      const headers = { authorization: deletion.headers.authorization ?? '', 'content-type': 'application/json' };
      void fetch(`${fixture.url}${deletion.url}`, { method: 'POST', headers, body: deletion.body }).then(
        async (got) => {
          const { headers: said } = got;
          const [type, date] = ['content-type', 'date'].map((name) => said.get(name) ?? '');
          // The clock of the service is that of the tests.
          response.writeHead(got.status, { 'content-type': type, ...(date !== '' && { date }) });
          response.end(Buffer.from(await got.arrayBuffer()));
        },
      );
    });
    own = new ErasureCase(fixture, server);
    own.configure();
    return own;
  }

  async close(): Promise<void> {
    await this.server.close();
    await this.fixture.close();
  }

  at(name: string): string {
    return this.fixture.at(name);
  }

  /** Writes dfinery.json; its paths are relative to it. */
  configure(erasure: Json = {}, more: Json = {}, name = 'dfinery.json'): string {
    const places = PLACES.map((words) => words.split(' ')).map(([target, place]) => ({ target, place }));
    const config = {
      base_url: this.server.url,
      service_id: SERVICE_ID,
      start_date: '2026-01-15',
      end_date: '2026-01-15',
      to_date_inclusive: 'true',
      spool_dir: 'spool',
      suppression_file: 'suppressed.jsonl',
      erasure: { places, by_column: 'member', ledger_dir: 'ledger', profiles: this.#searchesProfiles, ...erasure },
      ...more,
    };
    mkdirSync(dirname(this.at(name)), { recursive: true });
    writeFileSync(this.at(name), JSON.stringify(config));
    return this.at(name);
  }

  /** From now on people are found by profiles, without a column; `csv` undefined: the service has no such export. */
  profiles(csv: string | undefined, erasure: Json = {}, more: Json = {}): void {
    this.#searchesProfiles = true;
    this.configure({ by_column: undefined, ...erasure }, { suppression_file: undefined, ...more });
    if (csv === undefined) return;
    this.answerProfiles = (response) => {
      // Its date would be that of this machine.
      response.sendDate = false;
      response.writeHead(200, { 'content-type': 'text/csv' });
      response.end(csv);
    };
  }

  /** Number of exports of profiles so far. */
  get profileExports(): number {
    return this.server.seen.filter(({ url }) => url.startsWith('/api/v1/export/userprofile')).length;
  }

  /** Loads these rows into every place; the suppression list is made if there is none. */
  async load(rows: readonly Cells[], places: readonly string[] = PLACES): Promise<Said[]> {
    this.fixture.serve(rows);
    writeFileSync(this.at('suppressed.jsonl'), '', { flag: 'a' });
    const done: Said[] = [];
    for (const words of places) {
      const [target = '', place = ''] = words.split(' ');
      done.push(await this.run('sync', target, this.at(place), '--full-refresh', '--json'));
    }
    return done;
  }

  run(...words: readonly string[]): Promise<Said> {
    const env = { ...this.env, DFINERY_EXPORT_TOKEN: TOKENS.export };
    const config = words.includes('--config') ? [] : ['--config', this.at('dfinery.json')];
    return this.fixture.run([...words, ...config], env);
  }

  /** Plans; the report, and what was said beside it. */
  async plan(...words: readonly string[]): Promise<Report & { readonly said: string }> {
    const { result, said } = await this.run('forget', ...words, '--json');
    return { ...JSON.parse(result), said };
  }

  /** Plans, confirms and executes. */
  async erase(...words: readonly string[]): Promise<Report & { readonly said: string }> {
    const { hash } = await this.plan(...words);
    return this.plan(...words, '--execute', '--confirm', hash);
  }

  /** The options that name these places. */
  optionsOf(places: readonly string[]): string[] {
    return places
      .map((words) => words.split(' '))
      .flatMap(([target = '', place = '']) => ['--in', target, this.at(place)]);
  }

  list(name: string, text: string): string {
    writeFileSync(this.at(name), text);
    return this.at(name);
  }

  /** Copies a place aside, or back. */
  copy(from: string, to: string): void {
    rmSync(this.at(to), { recursive: true, force: true });
    cpSync(this.at(from), this.at(to), { recursive: true });
  }

  /** The ids whose deletion was requested, in order. */
  requested(): string[] {
    return this.server.ids().filter((id) => id !== undefined);
  }
}

/** A case for each test of the calling file. */
export function setUpErasure(): { case: ErasureCase } {
  const setup: Partial<{ case: ErasureCase }> = {};
  beforeEach(async () => {
    setup.case = await ErasureCase.start();
  });
  afterEach(() => setup.case?.close());
  return setup as { case: ErasureCase };
}
