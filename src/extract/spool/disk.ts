import { codeOf, configFailure, type Failure, messageOf, NO_ROOM, transientFailure } from '../../base/errors.ts';

const CLOSED = new Set(['EACCES', 'EPERM', 'EROFS', 'ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP', 'ENAMETOOLONG']);

/** What the system said about the spool folder, as a failure that names it; anything else unchanged. */
export function diskFailure(error: unknown, folder: string): unknown {
  const code = codeOf(error);
  if (code === undefined) return error;
  const details = { cause: error, where: { file: folder }, internal: messageOf(error) };
  if (NO_ROOM.has(code)) return full(folder, code, details);
  if (CLOSED.has(code)) {
    return configFailure(
      `The spool folder ${folder} cannot be used (${code}): set spool_dir to a folder that this user may write to.`,
      details,
    );
  }
  return transientFailure(`The spool folder ${folder} failed (${code}): try again later.`, details);
}

function full(folder: string, code: string, details: object): Failure {
  return transientFailure(
    `No space is left in the spool folder ${folder} (${code}): make room or set spool_dir to another disk; ` +
      'what was stored before is complete, the next run goes on from there.',
    details,
  );
}
