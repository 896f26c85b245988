import { type ProcessIdentity, THIS_PROCESS } from '../../../src/fs/process-identity.ts';

/** No process has this id: it is beyond what the system gives. */
export const DEAD_PID = 2 ** 22 + 1;

/** The text of a lock on disk; by default that of this process. */
export const ownerText = (more: Partial<ProcessIdentity> = {}): string =>
  JSON.stringify({ v: 1, ...THIS_PROCESS, ...more, token: '0123456789abcdef' });
