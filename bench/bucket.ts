// A bucket in memory, in a process of its own: node dist/bench/bucket.js. Prints its environment variables as JSON. A
// message makes it report the requests since the last one, and empties it.
import { FakeS3, type S3Request } from '../test/support/targets/fake-s3.ts';

/** The requests of a run to a bucket. */
export interface Asked {
  readonly requests: readonly S3Request[];
  /** Size of all objects in the bucket. */
  readonly bytes: number;
}

const bucket = await FakeS3.start();
console.log(JSON.stringify(bucket.env));
process.on('message', () => {
  const bytes = [...bucket.objects.values()].reduce((sum, held) => sum + held.bytes.length, 0);
  process.send?.({ requests: bucket.requests, bytes } satisfies Asked);
  bucket.objects.clear();
  bucket.reset();
});
