import { diskFailure } from '../../fs/disk-failure.ts';

/** What the system said about the spool folder, as a failure that names it; anything else unchanged. */
export const spoolFailure = (error: unknown, folder: string): unknown =>
  diskFailure(error, {
    what: `the spool folder ${folder}`,
    path: folder,
    remedy: 'set spool_dir to a folder on another disk that this user may write to',
    consequence: 'what was stored before is complete, the next run goes on from there',
  });
