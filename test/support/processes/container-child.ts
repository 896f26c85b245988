import { join } from 'node:path';
import { systemClock } from '../../../src/base/clock.ts';
import { acquireLock } from '../../../src/fs/lock.ts';

/** A process that tries to get a lock, and says whether it could; `hold` lives until its stdin ends. */
const [mode, folder = ''] = process.argv.slice(2);
const outcome = await acquireLock(join(folder, 'lock'), { subject: 'the lock', clock: systemClock, waitMs: 0 }).then(
  () => 'free',
  () => 'taken',
);
process.stdout.write(outcome);
if (mode === 'hold') {
  process.stdin.resume();
  await new Promise((resolve) => process.stdin.once('end', resolve));
  // As a process that is killed: nothing is given back.
  process.kill(process.pid, 'SIGKILL');
}
