import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { acquireLock } from '../../../src/fs/lock.ts';

/** A process that holds a lock in a folder until its stdin ends, or one that tries to get it: node <this> hold|try FOLDER. */
const [mode, folder = ''] = process.argv.slice(2);
const take = () => acquireLock(join(folder, 'lock'), { what: 'the lock', clock: systemClock, waitMs: 0 });

if (mode === 'hold') {
  await take();
  process.stdout.write('held\n');
  process.stdin.resume();
  await new Promise((resolve) => process.stdin.once('end', resolve));
  // As a process that is killed: nothing is given back.
  process.kill(process.pid, 'SIGKILL');
}
const outcome = await take().then(
  () => 'free',
  () => 'taken',
);
process.stdout.write(outcome);
