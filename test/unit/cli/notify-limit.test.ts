import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { systemClock } from '../../../src/base/clock.ts';
import { createLogger } from '../../../src/base/log.ts';
import { Redactor } from '../../../src/base/secrets.ts';
import { EMPTY_SUMMARY } from '../../../src/cli/results.ts';
import { notificationOf, notify } from '../../../src/cli/run/notify.ts';
import { envOf } from '../../support/env.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

it('a receiver that never answers delays a run by at most two timeouts of ten seconds', async () => {
  let received = 0;
  const server = createServer(() => {
    received++;
    setTimeout(collectGarbage, 5);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const env = envOf({});
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const notification = notificationOf(url, { env, redactor: new Redactor() });
  const said: string[] = [];
  const limits: number[] = [];
  const clock = {
    ...systemClock,
    after(ms: number, callback: () => void) {
      if (ms === 10_000) limits.push(ms);
      return systemClock.after(ms / 50, callback);
    },
  };
  const logger = createLogger(
    ({ message }) => said.push(message),
    'warn',
    (text) => text,
  );
  const { signal } = new AbortController();
  const run = {
    summary: { ...EMPTY_SUMMARY, rescued_cells: 1 },
    command: 'sync duckdb x',
    place: 'x',
    historyDays: 30,
  };
  try {
    if (notification !== undefined) await notify(notification, run, { clock, env, logger, signal });
  } finally {
    server.closeAllConnections();
    server.close();
  }
  expect([received, limits]).toEqual([2, [10_000, 10_000]]);
  expect(said).toEqual([expect.stringMatching(/did not answer within 10 s\.$/)]);
}, 10_000);
