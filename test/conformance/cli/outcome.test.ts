import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import summarySchema from '../../../schemas/summary.json' with { type: 'json' };
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import type { CommandOutput } from '../../support/processes/command-line.ts';
import { onDay, refusal } from '../../support/service/faults.ts';

const CANARY = 'canary-7d1f0c55e2-token';
type Json = Record<string, unknown>;

describe.concurrent('how a run ends', () => {
  let fixture: CliFixture;
  beforeAll(async () => {
    fixture = await CliFixture.start();
  });
  afterAll(() => fixture.close());

  async function fails(code: number, what: RegExp, config: Json, more: readonly string[] = [], name = 'x.duckdb') {
    const argv = ['sync', 'duckdb', join(fixture.dir, name), '--json', '--config', fixture.config(config)];
    const ended = await fixture.run([...argv, ...more]);
    expect([ended.code, ended.stderr]).toEqual([code, expect.stringMatching(what)]);
    expect(ended.stderr, 'no stack').not.toMatch(/\n\s+at /);
    expect(Object.keys(summaryIn(ended))).toEqual(summarySchema.required);
    expect(summaryIn(ended)).toMatchObject({ exit: code, error: expect.stringMatching(what) });
    return ended;
  }

  it('exits with 0 and prints the summary as the last line of stdout', async () => {
    const level = (text: string) => fixture.sim.setScenario({ columns: { own: [{ name: 'level', values: [text] }] } });
    level('1');
    expect((await fixture.sync({ end_date: daysBack(7) })).code).toBe(0);
    level('gold');
    const ended = await fixture.start(fixture.syncArgs()).ended;
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stdout.trimEnd().split('\n')).toHaveLength(1);
    expect(summaryIn(ended)).toMatchObject({
      v: 1,
      rows: fixture.sim.countRows({ from: daysBack(7), to: daysBack(2) }),
      days: 6,
      exports: 6,
      from_date: daysBack(7),
      next_from_date: daysBack(1),
      to_date_inclusive: true,
      columns_widened: expect.arrayContaining([{ name: 'level', from: 'long', to: 'string' }]),
      rescued_cells: 0,
      gaps: [],
      exit: 0,
      error: null,
    });
  });

  it('names a column that a run adds and widens as added alone', async () => {
    const rank = { name: 'rank', values: ['gold'] };
    const own = [rank, { ...rank, values: ['1'], days: [daysBack(7)] }];
    const ranks = await CliFixture.start({ columns: { own } });
    const ended = await ranks.start(ranks.syncArgs()).ended;
    await ranks.close();
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stderr).toContain('column rank changes from long to string');
    expect(summaryIn(ended)).toMatchObject({ columns_added: expect.arrayContaining(['rank']), columns_widened: [] });
  });

  it('writes an Arrow stream to stdout for `-`, and nothing else', async () => {
    const ended = await fixture.start(['sync', 'arrow', '-', '--config', fixture.config(), '--json']).ended;
    expect(ended.code, ended.stderr).toBe(0);
    expect(ended.stdout.length).toBeGreaterThan(10_000);
    expect(ended.stdout.slice(8, 20_000)).toContain('df_event_name');
    expect(ended.stdout).not.toContain('"next_from_date"');
    expect(JSON.parse(ended.stderr.trimEnd().split('\n').at(-1) ?? '')).toMatchObject({ days: 6, exit: 0 });
  });

  it('exits with 2 for a wrong token or a configuration that is refused, which is no run', async () => {
    await fails(2, /token.*reissued/i, { export_token: 'wrong' });
    const refused = await fixture.sync({ colour: 'red' });
    expect([refused.code, summaryIn(refused)]).toEqual([
      2,
      { v: 1, kind: 'failure', exit: 2, error: expect.stringContaining('unknown keys: colour') },
    ]);
  });

  it('exits with 3 when the service is down and with 4 when days are lost', async () => {
    const down = await fails(3, /refused the connection/, { base_url: 'http://127.0.0.1:9' }, [], 'down.duckdb');
    expect(summaryIn(down)).toMatchObject({ days: 0, exports: 0 });
    await fails(4, new RegExp(daysBack(40)), {}, ['--from', daysBack(40), '--to', daysBack(39)], 'gap.duckdb');
  });

  const STORED = / No day was committed to \S+; the cursor stays at \S+\. \S+ user profiles stored\./;
  it.each([
    ['loads the days where the profiles fail', 'profiles', /leave out user_profiles/, / committed to /, daysBack(1)],
    ['tells of profiles that it stored before the days failed', 'export', /token/, STORED, daysBack(7)],
  ] as const)('%s, and ends with the failure', async (_name, operation, what, said, next_from_date) => {
    const service = await startSimulator({ scenario: { answers: [{ operation, status: 401 }] } });
    onTestFinished(() => service.close());
    const { service_id, export_token } = service.scenario;
    const config = { base_url: service.url, service_id, export_token, user_profiles: true };
    const ended = await fails(2, what, config, [], `${operation}.duckdb`);
    expect(ended.stderr).toMatch(said);
    expect(summaryIn(ended)).toMatchObject({ next_from_date, profiles: operation === 'profiles' ? null : 2_000 });
  });
});

/** A service that repeats what it was sent. */
const ECHO = refusal(401, {
  body: `{"message":"no such token: ${CANARY}"}`,
  headers: { 'Content-Type': 'application/json' },
});

describe.concurrent('a token', () => {
  let fixture: CliFixture;
  beforeAll(async () => {
    fixture = await CliFixture.start({ fault: onDay(daysBack(6), ECHO) }, { exportToken: CANARY });
  });
  afterAll(() => fixture.close());

  const silent = (ended: CommandOutput, what: string) => {
    expect(`${ended.stdout}${ended.stderr}`, what).not.toContain(CANARY);
    expect(`${ended.stdout}${ended.stderr}`, what).not.toContain(encodeURIComponent(CANARY));
    expect(`${ended.stdout}${ended.stderr}`, `${what} says something`).not.toBe('');
  };

  it('is in no output of any command at any log level or format', async () => {
    const good = { export_token: CANARY, start_date: daysBack(5), end_date: daysBack(4) };
    const configs: Record<string, string> = {
      good: fixture.config(good),
      echoed: fixture.config({ ...good, start_date: daysBack(6) }),
      unknown: fixture.config({ ...good, [CANARY]: CANARY }),
      typed: fixture.config({ ...good, export_token: [CANARY], service_id: 7 }),
      elsewhere: fixture.config({ ...good, base_url: `http://user:${CANARY}@127.0.0.1:9/${CANARY}` }),
      short: join(fixture.dir, 'short.json'),
    };
    writeFileSync(configs.short, `{"export_token": "${CANARY}", `);
    const levels = [
      ['--log-level', 'debug', '--log-format', 'json'],
      ['--log-level', 'debug'],
    ];
    const sync = ['sync', 'duckdb', '--json'];
    const commands: (readonly [readonly string[], string])[] = [
      ...Object.keys(configs).map((name) => [sync, name] as const),
      [['check'], 'good'],
      [['discover'], 'good'],
      [['plan', 'duckdb', 'none.duckdb'], 'good'],
      [['plan', 'duckdb', 'none.duckdb'], 'typed'],
    ];
    const tried = async ([words, name]: (typeof commands)[number], i: number) => {
      const file = words === sync ? [`${fixture.file}-${i}`] : [];
      const ended = await fixture.run([...words, ...file, '--config', configs[name], ...levels[i % 2]]);
      silent(ended, `${words.join(' ')} with ${name}`);
      if (name !== 'good') expect(ended.code, `${words[0]} with ${name}: ${ended.stderr}`).toBe(2);
    };
    await Promise.all(commands.map(tried));
    const { export_token: _, ...open } = good;
    const file = join(fixture.dir, 'token.txt');
    writeFileSync(file, `${CANARY}\n`);
    const words = [...sync, fixture.file, '--config', fixture.config({ ...open, export_token: undefined })];
    for (const env of [{ DFINERY_EXPORT_TOKEN: CANARY }, { DFINERY_EXPORT_TOKEN_FILE: file }]) {
      const ended = await fixture.run(words, env);
      silent(ended, Object.keys(env).join());
      expect(ended.code, ended.stderr).toBe(0);
    }
    fixture.sim.setScenario({ fault: () => ECHO });
    for (const word of ['check', 'discover']) {
      const ended = await fixture.run([word, '--config', configs.good, '--log-level', 'debug']);
      silent(ended, `${word}, echoed`);
      expect(ended.code, ended.stderr).toBe(2);
    }
  });
});
