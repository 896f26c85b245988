import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { acquireLease, isLeased, LockFile } from '../../../src/fs/lock.ts';

/**
 * A process that holds one of everything that processes share in a folder until its stdin ends, or one that tries to
 * get it: node <this> hold FOLDER, node <this> try FOLDER RUN.
 */
const [mode, folder = '', run = ''] = process.argv.slice(2);
const shared = { what: 'the list', clock: systemClock, waitMs: 0 };
const isTaken = (work: Promise<unknown>) =>
  work.then(
    () => false,
    () => true,
  );

if (mode === 'hold') {
  await LockFile.acquire(join(folder, 'ledger.lock'), { what: 'the ledger', clock: systemClock, waitMs: 0 });
  await LockFile.acquire(join(folder, 'list.lock'), shared);
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
};
process.stdout.write(JSON.stringify(found));
