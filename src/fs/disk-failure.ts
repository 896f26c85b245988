import { codeOf, configError, hasCode, messageOf, transientError, UserError } from '../base/errors.ts';
import { capitalized } from '../base/text.ts';

const READ_FAILURES: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'there is no such file'],
  ['EISDIR', 'it is a folder'],
  ['EACCES', 'this user may not read it'],
]);

/** Why a file cannot be read, as a clause. */
export const whyUnreadable = (error: unknown): string => READ_FAILURES.get(codeOf(error) ?? '') ?? messageOf(error);

/** Codes of a disk, a quota or a file that takes no more bytes. */
const DISK_FULL_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);
/** Codes of a disk that fails whatever it is asked for: they never mean a defect of this program. */
const DISK_FAILING_CODES: ReadonlySet<string> = new Set([...DISK_FULL_CODES, 'EIO', 'EROFS', 'ESTALE']);
const GIVE_RIGHT = 'give another, or give this user the right to';
/** What to do about a path that this user cannot use, now or later, by the code. */
const REMEDIES: ReadonlyMap<string, string> = new Map([
  ['EACCES', GIVE_RIGHT],
  ['EPERM', GIVE_RIGHT],
  ['EROFS', GIVE_RIGHT],
  ['ENOENT', 'its folder does not exist, make it or give another'],
  ['ENOTDIR', 'a part of its path is no folder, give another'],
  ['EISDIR', 'it is a folder, give another'],
  ['EEXIST', 'something else has its name, remove that or give another'],
  ['ELOOP', 'its links lead in a circle, give another'],
  ['ENAMETOOLONG', 'its name is too long, give another'],
  ['EXDEV', 'a folder in it lies on another disk, move that back, or link the place as a whole'],
]);

/**
 * The consequence of a disk that fails while a command changes a place. A part of the change may stay: the next run
 * finishes or removes it.
 */
export const COMMITTED_IS_KEPT = 'what was committed is kept, and the next run does the rest';

/** The words of a message: `The disk of SUBJECT is full (ENOSPC): make room or REMEDY; CONSEQUENCE.` */
export interface DiskErrorContext {
  /** Absent if the system does not name it. */
  readonly path?: string;
  /** Name of the path in messages, `the spool folder /var/spool`; by default the path as it is. */
  readonly subject?: string;
  /** The consequence for the work: `the former copy stays`. */
  readonly consequence?: string;
  /** A remedy other than making room: `set spool_dir to a folder on another disk`. */
  readonly remedy?: string;
  /** The end of `… cannot be`, by default `written`. */
  readonly verb?: 'used';
}

export const isDiskFull = (error: unknown): boolean => hasCode(error, DISK_FULL_CODES);
export const isDiskFailing = (error: unknown): boolean => hasCode(error, DISK_FAILING_CODES);

/** A system error about a path on disk as a UserError that names it. Others, also Node's `ERR_…`, stay as they are. */
export function diskError(error: unknown, context: DiskErrorContext): unknown {
  const code = codeOf(error);
  if (code === undefined || code.startsWith('ERR_') || error instanceof UserError) return error;
  const { path, consequence, verb = 'written' } = context;
  const { subject = path ?? 'a file that was written', remedy = REMEDIES.get(code) } = context;
  const details = { cause: error, detail: messageOf(error) };
  const beginning = subject === path ? path : capitalized(subject);
  const end = consequence === undefined ? '.' : `; ${consequence}.`;
  if (isDiskFull(error)) {
    const advice = remedy === undefined ? 'make room and run again' : `make room or ${remedy}`;
    return transientError(`The disk of ${subject} is full (${code}): ${advice}${end}`, details);
  }
  if (REMEDIES.has(code)) return configError(`${beginning} cannot be ${verb} (${code}): ${remedy}${end}`, details);
  return transientError(`${beginning} failed (${code}): try again later${end}`, details);
}

/** Settles as `promise` does, but throws an error of the system as `diskError` does. */
export const withDiskErrors = <T>(context: DiskErrorContext, promise: Promise<T>): Promise<T> =>
  promise.catch((error: unknown) => {
    throw diskError(error, context);
  });

/** The error of a failing disk as a UserError with the path of the system's error; any other unchanged. */
export function diskErrorByItsPath(error: unknown): unknown {
  if (!isDiskFailing(error)) return error;
  const { path } = error as { path?: unknown };
  return diskError(error, typeof path === 'string' ? { path } : {});
}
