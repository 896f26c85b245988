import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { dirname } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import type { ErasureReport } from '../../../src/erasure/erasure-report.ts';
import type { Json } from '../airbyte/connector.ts';
import { PrivacyFixture, type Said } from '../privacy.ts';
import { SERVICE_ID, TOKENS } from '../service/start-service.ts';
import type { Cells } from '../targets/csv.ts';
import { type Answer, type DeletionServer, json, SUCCESS, startDeletionServer } from './deletions.ts';

const SUPPRESSION_KEY = 'a suppression key of 32 characters';
export const PLACES = ['duckdb events.duckdb', 'parquet lake', 'delta delta'] as const;
export const [DUCKDB, LAKE, DELTA] = PLACES;

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

/** A place loads the rows of one day; each test of the calling file has a service, a folder and places of its own. */
export function setUpErasure() {
  let fixture: PrivacyFixture;
  let server: DeletionServer;
  let searchesProfiles: boolean;
  /** What a test may change: how the service answers deletions and, after `useProfiles`, exports of profiles. */
  const changeable = () => ({
    answer: ((_, response) => json(response, SUCCESS)) as Answer,
    answerProfiles: (response: ServerResponse): void => json(response, { result: 'fail' }, 404),
    env: { DFINERY_SUPPRESSION_KEY: SUPPRESSION_KEY, DFINERY_IMPORT_TOKEN: TOKENS.import } as Record<string, string>,
  });
  const erasure = {
    ...changeable(),
    forgetRequests: () => {
      server.seen.length = 0;
    },
    clock: () => fixture.clock,
    holding: (text: string) => fixture.holding(text),
    /** The ids whose deletion was requested, in order. */
    requestedIds: () => server.ids().filter((id) => id !== undefined),
    /** Number of exports of profiles so far. */
    profileExports: () => server.seen.filter(({ url }) => url.startsWith('/api/v1/export/userprofile')).length,
    ...{ at, configure, useProfiles, load, run, runAt, planOf, erase, proofOf, only, writeList, copy },
  };

  beforeEach(async () => {
    Object.assign(erasure, changeable());
    searchesProfiles = false;
    fixture = await PrivacyFixture.start();
    server = await startDeletionServer((deletion, response, nth) => {
      if (deletion.url.startsWith('/api/v1/export/userprofile')) return erasure.answerProfiles(response);
      if (!deletion.url.startsWith('/api/v1/export/')) return erasure.answer(deletion, response, nth);
      const headers = { authorization: deletion.headers.authorization ?? '', 'content-type': 'application/json' };
      const forwarded = fetch(`${fixture.url}${deletion.url}`, { method: 'POST', headers, body: deletion.body });
      void forwarded.then(async (got) => {
        const [type, date] = ['content-type', 'date'].map((name) => got.headers.get(name) ?? '');
        // The clock of the service is that of the tests.
        response.writeHead(got.status, { 'content-type': type, ...(date !== '' && { date }) });
        response.end(Buffer.from(await got.arrayBuffer()));
      });
    });
    configure();
  });
  afterEach(async () => {
    await server.close();
    await fixture.close();
  });

  function at(name: string): string {
    return fixture.at(name);
  }

  /** Writes dfinery.json; its paths are relative to it. */
  function configure(more: Json = {}, others: Json = {}, name = 'dfinery.json'): string {
    const places = PLACES.map((words) => words.split(' ')).map(([target, place]) => ({ target, place }));
    const config = {
      base_url: server.url,
      service_id: SERVICE_ID,
      start_date: '2026-01-15',
      end_date: '2026-01-15',
      to_date_inclusive: 'true',
      spool_dir: 'spool',
      suppression_file: 'suppressed.jsonl',
      erasure: { places, by_column: 'member', ledger_dir: 'ledger', profiles: searchesProfiles, ...more },
      ...others,
    };
    mkdirSync(dirname(at(name)), { recursive: true });
    writeFileSync(at(name), JSON.stringify(config));
    return at(name);
  }

  /** From now on people are found by profiles, without a column; `csv` undefined: the service has no such export. */
  function useProfiles(csv: string | undefined, more: Json = {}, others: Json = {}): void {
    searchesProfiles = true;
    configure({ by_column: undefined, ...more }, { suppression_file: undefined, ...others });
    if (csv === undefined) return;
    erasure.answerProfiles = (response) => {
      // Its date would be that of this machine.
      response.sendDate = false;
      response.writeHead(200, { 'content-type': 'text/csv' });
      response.end(csv);
    };
  }

  /** Loads these rows into these places, or into all; the suppression list is made if there is none. */
  async function load(rows: readonly Cells[], ...places: readonly string[]): Promise<Said[]> {
    fixture.serve(rows);
    writeFileSync(at('suppressed.jsonl'), '', { flag: 'a' });
    const done: Said[] = [];
    for (const place of places.length === 0 ? PLACES : places)
      done.push(await runAt('sync', place, '--full-refresh', '--json'));
    return done;
  }

  function run(...words: readonly string[]): Promise<Said> {
    const config = words.includes('--config') ? [] : ['--config', at('dfinery.json')];
    return fixture.run([...words, ...config], { ...erasure.env, DFINERY_EXPORT_TOKEN: TOKENS.export });
  }

  /** Runs a command that takes a target and its place. */
  function runAt(command: string, place: string, ...words: readonly string[]): Promise<Said> {
    const [target = '', path = ''] = place.split(' ');
    return run(command, target, at(path), ...words);
  }

  /** Plans; the report, and what was said beside it. */
  async function planOf(...words: readonly string[]): Promise<Report & { readonly said: string }> {
    const { result, said } = await run('forget', ...words, '--json');
    return { ...JSON.parse(result), said };
  }

  /** Plans, confirms and executes. */
  async function erase(...words: readonly string[]): Promise<Report & { readonly said: string }> {
    const { hash } = await planOf(...words);
    return planOf(...words, '--execute', '--confirm', hash);
  }

  /** The exit code and the text of a proof. */
  async function proofOf(id: string): Promise<[number, string]> {
    const { code, result } = await run('forget', '--proof', id);
    return [code, result];
  }

  /** The options that name these places alone. */
  function only(...places: readonly string[]): string[] {
    return places.map((words) => words.split(' ')).flatMap(([target = '', place = '']) => ['--in', target, at(place)]);
  }

  function writeList(name: string, text: string): string {
    writeFileSync(at(name), text);
    return at(name);
  }

  /** Copies a place aside, or back. */
  function copy(from: string, to: string): void {
    rmSync(at(to), { recursive: true, force: true });
    cpSync(at(from), at(to), { recursive: true });
  }

  return erasure;
}
