import { systemClock } from '../../../src/base/clock.ts';
import { addDays, dayAt } from '../../../src/base/days.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secrets.ts';
import { ExportClient } from '../../../src/service/export/client.ts';
import { ExportQuota } from '../../../src/service/quota/quota.ts';

/** A process of its own that asks for `count` exports at once: node <this> URL SPOOL_DIR COUNT. Waits for no reset. */
const [baseUrl = '', stateRoot = '', count = '1'] = process.argv.slice(2);
const shared = { baseUrl, serviceId: 'svc-1', clock: systemClock, logger: silentLogger };
const quota = new ExportQuota({
  ...shared,
  maxConcurrentExports: 5,
  exportsPerHour: 25,
  random: () => 0,
  stateRoot,
  maxWaitMs: 60_000,
});
const service = new ExportClient({
  ...shared,
  exportToken: new Secret('export-token-7f3a'),
  stallMs: 60_000,
  env: () => undefined,
  quota,
});
const reported = { data: 0, refused: 0, later: 0 };

async function once(): Promise<void> {
  const day = addDays(dayAt(systemClock.now()), -3);
  const request = {
    from: day,
    to: day,
    events: [],
    eventsCondition: 'all',
    properties: [],
    propertiesCondition: 'all',
  } as const;
  try {
    const answer = await service.exportEvents(request, new AbortController().signal);
    if (answer.kind !== 'data') {
      reported.refused++;
      return;
    }
    for await (const _chunk of answer.bytes);
    reported.data++;
  } catch {
    reported.later++;
  }
}

await Promise.all(Array.from({ length: Number(count) }, once));
await service.close();
process.stdout.write(JSON.stringify(reported));
