import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { addDays, dayAt } from '../../../src/base/days.ts';
import { createLogger } from '../../../src/base/log.ts';
import { Stopped } from '../../../src/base/process.ts';
import { readConfiguration } from '../../../src/cli/configuration.ts';
import { contextOf } from '../../../src/cli/context.ts';
import { placeOf } from '../../../src/cli/places.ts';
import { EMPTY_SUMMARY, type Summary } from '../../../src/cli/results.ts';
import { notify } from '../../../src/cli/run/notify.ts';
import { NO_TERMINAL } from '../../../src/cli/terminal/terminal.ts';
import { duckdb } from '../../../src/targets/targets.ts';
import { runHere } from '../../support/processes/command-line.ts';
import { serve, whole } from '../../support/service/faulty-server.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/**
 * Notifies of a run a receiver that gives this answer, and none for 0; what it got and what was warned of.
 */
async function reported(
  more: Partial<Summary>,
  {
    historyDays = 30,
    endDate = '',
    answer: status = 200,
    clock = systemClock,
    stop = new AbortController(),
    variables = {},
  } = {},
) {
  const { url, requests } = await serve(() => {
    // What waits for the answer must not be collected.
    if (status === 0) setTimeout(collectGarbage, 5);
    return status === 0 ? [{ hold: true }] : whole(status, '');
  });
  const warnings: string[] = [];
  const logger = createLogger(({ message }) => warnings.push(message), 'warn', String);
  const env = { DFINERY_NOTIFY_URL: url, ...variables };
  const context = contextOf({ terminal: NO_TERMINAL, clock, env, signal: stop.signal }, () => {}, 'error');
  const config = { ...readConfiguration(undefined, context), historyDays, endDate: endDate || undefined };
  const place = placeOf(duckdb, 'x', config, context);
  await notify({ ...EMPTY_SUMMARY, ...more }, { place, config }, { ...context, logger });
  const posts: { text: string; reasons: string[] }[] = requests.map(({ body }) => JSON.parse(body));
  return { posts, warnings, reasons: posts[0]?.reasons ?? [] };
}

const back = (days: number) => addDays(dayAt(systemClock.now()), -days);

describe('a notification', () => {
  it.each<[string, Partial<Summary>, string[]]>([
    ['nothing for a run without news', { rows: 5, days: 1 }, []],
    [
      'a column that was widened',
      { columns_widened: [{ name: 'n', from: 'long', to: 'string' }] },
      ['Column n changed from long to string.'],
    ],
    ['cells that did not fit', { rescued_cells: 2 }, ['2 cells did not fit their columns; their text is in _rescued.']],
    [
      'a column whose name has control characters, escaped',
      { columns_added: ['a\n\u001b[2J'] },
      ['1 new column: a\\u000a\\u001b[2J.'],
    ],
    ['a failure', { exit: 3, error: 'It is down.' }, ['The run failed (exit 3): It is down.']],
  ])('reports %s', async (_what, summary, reasons) => {
    const found = await reported(summary);
    expect(found.reasons).toEqual(reasons);
    expect(found.posts).toHaveLength(reasons.length);
  });

  it.each([
    [22, []],
    [23, [`can be exported until ${back(-7)}.`]],
    [31, ['can no longer be exported.']],
  ])('warns in time of a first incomplete day, which was %i days ago', async (days, ends) => {
    const { posts, reasons } = await reported({ next_from_date: back(days) });
    expect(reasons).toEqual(ends.map((end) => `${back(days)}, the first day not yet complete, ${end}`));
    expect(posts).toHaveLength(ends.length);
  });

  it('says of a run that stored profiles alone that no day was committed', async () => {
    const days = { from_date: back(2), next_from_date: back(2) };
    const { posts } = await reported({ ...days, exit: 3, error: 'It is down.', profiles: 5 });
    expect(posts[0].text).toMatch(/\nNo day was committed to x; the cursor stays at \S+\. 5 user profiles stored\.$/);
  });

  it('counts the days that the service keeps by history_days', async () => {
    expect((await reported({ next_from_date: back(23) }, { historyDays: 60 })).posts).toEqual([]);
    expect((await reported({ next_from_date: back(53) }, { historyDays: 60 })).posts).toHaveLength(1);
  });

  it('is silent about a cursor behind end_date, which no run reads', async () => {
    expect((await reported({ next_from_date: back(31) }, { endDate: back(32) })).posts).toEqual([]);
    expect((await reported({ next_from_date: back(31) }, { endDate: back(31) })).posts).toHaveLength(1);
  });

  it.each([500, 404, 301])('is sent once for the answer %i, which logs a warning', async (status) => {
    const { posts, warnings } = await reported({ rescued_cells: 1 }, { answer: status });
    expect(posts).toHaveLength(1);
    expect(warnings).toEqual([expect.stringContaining(`answered ${status}.`)]);
  });

  it('delays a run by at most ten seconds if its receiver never answers', async () => {
    const timeouts: number[] = [];
    const after: typeof systemClock.after = (ms, callback) => {
      if (ms === 10_000) timeouts.push(ms);
      return systemClock.after(ms / 50, callback);
    };
    const { posts, warnings } = await reported({ rescued_cells: 1 }, { answer: 0, clock: { ...systemClock, after } });
    expect([posts.length, timeouts]).toEqual([1, [10_000]]);
    expect(warnings).toEqual([expect.stringMatching(/did not answer within 10 s\.$/)]);
  }, 10_000);

  it('ends with the run that is stopped, and the warning says so', async () => {
    const stop = new AbortController();
    const after: typeof systemClock.after = (ms, callback) => {
      setTimeout(() => stop.abort(new Stopped('SIGINT')), 200);
      return systemClock.after(ms, callback);
    };
    const { posts, warnings } = await reported(
      { rescued_cells: 1 },
      { answer: 0, clock: { ...systemClock, after }, stop },
    );
    expect(posts).toHaveLength(1);
    expect(warnings).toEqual([expect.stringMatching(/the run was stopped before 127\S+ answered\.$/)]);
  });
});

it('notifies of a sync that fails before its first request, not of a dry run, and without a password', async () => {
  const { url, requests } = await serve(() => whole(200, ''));
  const env = { DFINERY_NOTIFY_URL: url };
  const placed = { ...env, DFINERY_TARGET: 'duckdb', DFINERY_PLACE: 'x.duckdb' };
  await runHere(['sync'], { env: placed });
  expect(JSON.parse(requests[0].body).text).toMatch(
    /^dfinery-elt, sync duckdb x\.duckdb:\n.*\nNothing was committed to x\.duckdb\.$/,
  );
  expect((await runHere(['sync', '--dry-run', '--json'], { env: placed })).code).toBe(2);
  for (const scheme of ['postgres', 'https']) {
    const words = ['sync', 'duckdb', `${scheme}://user:SECRET@host/db`];
    expect(JSON.stringify(await runHere(words, { env }))).not.toContain('SECRET');
  }
  const configured = { ...env, DFINERY_TARGET: 'delta', DFINERY_PLACE: 's3://user:SECRET@bucket/lake' };
  expect(JSON.stringify(await runHere(['sync'], { env: configured }))).not.toContain('SECRET');
  expect(requests).toHaveLength(1);
});

it.each(['http://hooks.example/t0ken', 'https://user:t0ken@hooks.example/x', 't0ken'])(
  'the address %s is refused without being shown',
  async (DFINERY_NOTIFY_URL) => {
    const { code, stderr } = await runHere(['sync', 'duckdb', 'x.duckdb'], { env: { DFINERY_NOTIFY_URL } });
    expect([code, stderr]).toEqual([2, expect.stringMatching(/notify_url is not usable, wanted https:/)]);
    expect(stderr).not.toContain('t0ken');
  },
);
