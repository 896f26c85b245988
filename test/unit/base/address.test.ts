import { expect, it } from 'vitest';
import { openStorage } from '../../../src/storage/open.ts';

it.each(['AWS_ENDPOINT_URL', 'AWS_ENDPOINT_URL_S3'])('a plain endpoint of %s is refused by its name', async (name) => {
  const options = { env: { [name]: 'http://store.example:9000' }, signal: new AbortController().signal };
  const message = expect.stringContaining(`${name} is not https`);
  await expect(openStorage('s3://bucket', options)).rejects.toMatchObject({ exitCode: 2, message });
});
