import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CliFixture, daysBack, summaryIn } from '../../support/processes/cli-child.ts';
import { onNth, STALL } from '../../support/service/faults.ts';
import { type RawRequest, serve, whole } from '../../support/service/faulty-server.ts';
import { until } from '../../support/wait.ts';

const TOKEN = 'T0KEN-in-the-path';

let fixture: CliFixture;
let url: string;
let requests: readonly RawRequest[];
let answers: number[];
beforeEach(async () => {
  fixture = await CliFixture.start();
  answers = [];
  const server = await serve(() => whole(answers.shift() ?? 200, 'no'));
  url = `${server.url}/hooks/${TOKEN}?x=1`;
  requests = server.requests;
});
afterEach(() => fixture.close());
const posts = () => requests.map(({ body }) => JSON.parse(body));

const sync = (config: Record<string, unknown>) => fixture.sync({ ...config, notify_url: url });

describe('a notification', () => {
  it('is a POST for a new column or a failure, and none for a run without news; it changes no exit code', async () => {
    const first = await sync({ end_date: daysBack(4) });
    expect(first.code, first.stderr).toBe(0);
    expect(requests).toHaveLength(1);
    expect(posts()[0]).toMatchObject({
      v: 1,
      command: `sync duckdb ${fixture.file}`,
      summary: summaryIn(first),
    });
    expect(requests[0]).toMatchObject({
      line: `POST /hooks/${TOKEN}?x=1 HTTP/1.1`,
      headers: { 'content-type': 'application/json' },
    });
    expect(posts()[0].text).toMatch(/new columns: /);
    expect((await sync({ end_date: daysBack(4), lookback_days: 0 })).code).toBe(0);
    expect(requests).toHaveLength(1);
    answers = [500];
    const failed = await sync({ export_token: 'wrong' });
    expect([failed.code, failed.stderr]).toEqual([2, expect.stringContaining('could not be sent')]);
    expect(posts()[1].text).toMatch(/The run failed \(exit 2\)/);
    expect(posts()[1].summary).toEqual(summaryIn(failed));
    for (const { stderr, stdout } of [first, failed]) expect(stderr + stdout).not.toContain(TOKEN);
    expect(failed.stdout.trimEnd().split('\n').at(-1)).toBe(JSON.stringify(summaryIn(failed)));
  });

  it.each([
    ['SIGTERM', 1],
    ['SIGINT', 0],
  ] as const)('a run that %s stops sends %i, and ends by that signal', async (signal, count) => {
    await fixture.close();
    fixture = await CliFixture.start({ fault: onNth(1, STALL) });
    const child = fixture.start(fixture.syncArgs({ notify_url: url }));
    await until(() => fixture.sim.isStalled);
    child.process.kill(signal);
    expect((await child.ended).signal).toBe(signal);
    expect(requests).toHaveLength(count);
    for (const { text } of posts()) expect(text).toMatch(/The run failed \(exit \d+\): stopped by SIGTERM/);
  });
});
