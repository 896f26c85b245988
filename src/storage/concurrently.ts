import pLimit from 'p-limit';

/**
 * Runs work on all items, on at most `limit` of them at the same time. After a failure it drops what has not begun, and
 * throws when nothing is under way any more.
 */
export async function mapConcurrently<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const queue = pLimit({ concurrency: limit, rejectOnClear: true });
  const results = items.map((item) => queue(work, item));
  try {
    return await Promise.all(results);
  } finally {
    queue.clearQueue();
    await Promise.allSettled(results);
  }
}
