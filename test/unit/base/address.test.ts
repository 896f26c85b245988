import { describe, expect, it } from 'vitest';
import { openStorage } from '../../../src/storage/open.ts';

describe('the endpoint of an object store', () => {
  it.each(['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3'])('of %s is told with its name', async (name) => {
    const options = { env: { [name]: 'http://store.example:9000' }, signal: new AbortController().signal };
    const message = expect.stringContaining(`${name} is not https`);
    await expect(openStorage('s3://bucket', options)).rejects.toMatchObject({ exitCode: 2, message });
  });
});
