import { diskFailure } from '../../fs/disk-failure.ts';

/** A system error of the spool folder as a Failure that names the folder; any other error unchanged. */
export const spoolFailure = (error: unknown, folder: string): unknown =>
  diskFailure(error, {
    what: `the spool folder ${folder}`,
    path: folder,
    remedy: 'set spool_dir to a folder on another disk that this user may write to',
    consequence: 'what was stored before is complete, the next run goes on from there',
  });
