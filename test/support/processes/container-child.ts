import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLogger } from '../../../src/base/log.ts';
import { acquireLease, isLeased, LockFile } from '../../../src/fs/lock.ts';
import { NO_LIMITS } from '../../../src/service/http/headers.ts';
import { ExportQuota } from '../../../src/service/quota/quota.ts';

/**
 * A process that holds one of everything that processes share in a folder until its stdin ends, or one that tries to
 * get it: node <this> hold FOLDER, node <this> try FOLDER RUN.
 */
const [mode, folder = '', run = ''] = process.argv.slice(2);
const quota = new ExportQuota({
  baseUrl: 'https://api.example',
  serviceId: 'svc-1',
  maxConcurrentExports: 1,
  exportsPerHour: 100,
  clock: systemClock,
  random: () => 0,
  logger: silentLogger,
  stateRoot: folder,
});
const shared = { what: 'the list', clock: systemClock, waitMs: 0 };
const isTaken = (work: Promise<unknown>) =>
  work.then(
    () => false,
    () => true,
  );

if (mode === 'hold') {
  await LockFile.acquire(join(folder, 'ledger.lock'), { what: 'the ledger', clock: systemClock, waitMs: 0 });
  await LockFile.acquire(join(folder, 'list.lock'), shared);
  const place = await quota.enter(new AbortController().signal);
  await place.answered({
    status: 200,
    limited: false,
    limits: NO_LIMITS,
  });
  const lease = acquireLease(folder, systemClock);
  process.stdout.write(`${lease.run}\n`);
  process.stdin.resume();
  await new Promise((resolve) => process.stdin.once('end', resolve));
  // As a process that is killed: nothing is given back.
  process.kill(process.pid, 'SIGKILL');
}
const found = {
  ledger: await isTaken(
    LockFile.acquire(join(folder, 'ledger.lock'), { what: 'the ledger', clock: systemClock, waitMs: 0 }),
  ),
  list: await isTaken(LockFile.acquire(join(folder, 'list.lock'), shared)),
  lease: isLeased(folder, run),
  quota: quota.forecast(1).startableNow === 0,
};
process.stdout.write(JSON.stringify(found));
