import { describe, expect, it } from 'vitest';
import { configError, type UserError } from '../../../src/base/errors.ts';
import { diskError, diskErrorByItsPath } from '../../../src/fs/disk-failure.ts';

const errorOf = (code: string) => Object.assign(new Error(`${code}: it said`), { code });
const place = { subject: 'the ledger /l', path: '/l' };
const failure = (code: string, more: object = {}) => diskError(errorOf(code), { ...place, ...more }) as UserError;

describe('an error of a disk', () => {
  it.each([
    ['ENOSPC', 'transient', 'The disk of the ledger /l is full (ENOSPC): make room and run again.'],
    ['EDQUOT', 'transient', 'The disk of the ledger /l is full (EDQUOT): make room and run again.'],
    ['EACCES', 'config', 'The ledger /l cannot be written (EACCES): give another, or give this user the right to.'],
    [
      'ENOENT',
      'config',
      'The ledger /l cannot be written (ENOENT): its folder does not exist, make it or give another.',
    ],
    [
      'EXDEV',
      'config',
      'The ledger /l cannot be written (EXDEV): a folder in it lies on another disk, move that back, or link the place as a whole.',
    ],
    ['EIO', 'transient', 'The ledger /l failed (EIO): try again later.'],
  ])('%s: who must act, and what is said', (code, kind, message) => {
    expect(failure(code)).toMatchObject({ kind, message, cause: errorOf(code), detail: `${code}: it said` });
  });

  it('names the advice and the state of the work', () => {
    const more = { remedy: 'set x', consequence: 'nothing was kept' };
    expect(failure('ENOSPC', more).message).toBe(
      'The disk of the ledger /l is full (ENOSPC): make room or set x; nothing was kept.',
    );
    expect(failure('EACCES', more).message).toBe('The ledger /l cannot be written (EACCES): set x; nothing was kept.');
    expect(failure('EIO', { ...more, subject: '/l' }).message).toBe(
      '/l failed (EIO): try again later; nothing was kept.',
    );
  });

  it('is unchanged if it has no code of the system, or is a UserError already', () => {
    const other = new Error('other');
    const defect = errorOf('ERR_INVALID_ARG_TYPE');
    expect(diskError(defect, place)).toBe(defect);
    expect(diskError(other, place)).toBe(other);
    const reported = Object.assign(configError('told'), { code: 'ENOSPC' });
    expect(diskError(reported, place)).toBe(reported);
  });

  it('that nothing has converted names the path of the system, unless it may mean a defect', () => {
    const at = (code: string, path?: string) => diskErrorByItsPath(Object.assign(errorOf(code), { path })) as UserError;
    expect(at('EIO', '/l')).toMatchObject({ kind: 'transient', message: '/l failed (EIO): try again later.' });
    expect(at('EROFS', '/l')).toMatchObject({ kind: 'config' });
    expect(at('ENOSPC').message).toBe('The disk of a file that was written is full (ENOSPC): make room and run again.');
    expect(at('EIO')).toMatchObject({ message: 'A file that was written failed (EIO): try again later.' });
    const others = [errorOf('ENOENT'), errorOf('EBADF'), new Error('other'), 'text', configError('told')];
    for (const other of others) expect(diskErrorByItsPath(other)).toBe(other);
  });
});
