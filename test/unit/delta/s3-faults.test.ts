import { describe, expect, it } from 'vitest';
import { transientError, UserError } from '../../../src/base/errors.ts';
import { s3Error } from '../../../src/storage/s3-client.ts';

const answer = (name: string, status?: number) =>
  Object.assign(new Error('said by the store'), { name, $metadata: { httpStatusCode: status } });
const coded = (code: string, more: object = {}) => Object.assign(new Error('broken'), { code }, more);

describe('an error of an object store', () => {
  it.each<[string, unknown, UserError['kind'], string]>([
    ['no bucket', answer('NoSuchBucket', 404), 'config', 'there is no such bucket'],
    ['a refused key', answer('InvalidAccessKeyId', 400), 'config', 'the credentials were refused (InvalidAccessKeyId)'],
    ['status 403', answer('Whatever', 403), 'config', 'the credentials were refused'],
    ['a refusal without a status', answer('AccessDenied'), 'config', 'the credentials were refused (AccessDenied)'],
    ['status 401', answer('Whatever', 401), 'config', 'the credentials were refused'],
    ['no region', new Error('Region is missing'), 'config', 'set AWS_REGION'],
    ['a full disk', coded('ENOSPC'), 'transient', 'set spool_dir to another disk'],
    ['a broken connection', coded('ECONNRESET'), 'transient', '(ECONNRESET): try again later'],
    ['status 500', answer('InternalError', 500), 'transient', '(500 InternalError): try again later'],
    ['status 500 of any name', answer('Whatever', 500), 'transient', '(500 Whatever): try again later'],
    ['status 503 of any name', answer('Whatever', 503), 'transient', '(503 Whatever): try again later'],
    ['status 429', answer('Whatever', 429), 'transient', 'try again later'],
    ['status 408', answer('Whatever', 408), 'transient', 'try again later'],
    ['a request to slow down', answer('SlowDown', 400), 'transient', 'try again later'],
    [
      'an answer that broke off',
      coded('ECONNRESET', { $metadata: { httpStatusCode: 200 } }),
      'transient',
      '(ECONNRESET)',
    ],
    ['what the store does not do', answer('NotImplemented', 501), 'config', 'refused a request (501 NotImplemented)'],
    ['a refused request', answer('InvalidArgument', 400), 'config', 'refused a request (400 InvalidArgument)'],
    ['a refused request with a code', coded('X', { $metadata: { httpStatusCode: 400 } }), 'config', '(400 Error)'],
    ['a request that was never made', new TypeError('wrong'), 'system', 'could not be made (TypeError)'],
    ['an answer that leads elsewhere', coded('X', { $metadata: { httpStatusCode: 300 } }), 'config', '(300 Error)'],
    ['no error at all', undefined, 'system', 'could not be made (Error)'],
  ])('is reported: %s', (_, thrown, kind, text) => {
    const failure = s3Error(thrown, 's3://bucket/lake', undefined);
    expect(failure).toBeInstanceOf(UserError);
    expect(failure.kind).toBe(kind);
    expect(failure.message).toContain(text);
  });

  it.each([
    ['a name and a status', answer('SlowDown', 503), 'SlowDown 503'],
    ['a name and a code', coded('ECONNRESET'), 'Error ECONNRESET'],
    ['a name alone', new TypeError('wrong'), 'TypeError'],
  ])('keeps its details for the log: %s', (_, thrown, internal) => {
    expect(s3Error(thrown, 's3://bucket', undefined)).toMatchObject({ internal, cause: thrown });
  });

  it('is unchanged if it is a UserError or the reason of a stop', () => {
    const failure = transientError('known.');
    expect(s3Error(failure, 's3://bucket', undefined)).toBe(failure);
    const stop = AbortSignal.abort(new Error('stopped'));
    expect(() => s3Error(failure, 's3://bucket', stop)).toThrow('stopped');
  });
});
