import { loaderOf } from '../load.ts';
import type { Target } from '../target.ts';
import { peopleInDelta } from './people.ts';
import { compactDelta, purgeDelta } from './rewrite.ts';
import { openDeltaSink } from './sink.ts';
import { verifyDelta } from './verify.ts';

/** Delta Lake tables in a folder or a bucket, a window a commit. */
export const delta: Target = {
  name: 'delta',
  place: { name: 'url', describe: 'A folder, or s3://BUCKET/PREFIX; made where there is none' },
  summaries: {
    sync: 'The export into Delta Lake tables, in a folder or a bucket: a window is a commit',
    verify: 'The files of Delta tables against their log and receipts; exit 1 where they differ',
    compact: 'Makes the files of each date one, sorted; drops those without rows',
  },
  open: async (url, options) => loaderOf(await openDeltaSink({ ...options, url })),
  verify: (url, options) => verifyDelta({ ...options, url }),
  compact: (url, options) => compactDelta({ ...options, url }),
  people: (url, column, texts, options) => peopleInDelta({ ...options, url }, column, texts),
  purge: (url, leaveOut, options) => purgeDelta({ ...options, url, leaveOut }),
};
