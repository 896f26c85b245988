import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { openStorage } from '../../../src/storage/open.ts';
import { envOf } from '../../support/env.ts';
import { FakeS3 } from '../../support/targets/fake-s3.ts';

let s3: FakeS3;
beforeEach(async () => {
  s3 = await FakeS3.start();
  // The SDK's own chain reads the environment of the process.
  for (const [name, value] of Object.entries(s3.env)) vi.stubEnv(name, value);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await s3.close();
});

const at = (second: number) => Date.UTC(2026, 0, 1, 0, 0, second);
/** An upload that nobody has ended, of which the bucket keeps what was sent. */
const begun = (id: string, key: string, second: number) =>
  s3.uploads.set(id, { key, began: new Date(at(second)), parts: new Map() });

/** Erases everything of `events` that is older, and nothing else. */
async function erase(second: number): Promise<void> {
  const storage = await openStorage('s3://bucket/lake', { env: envOf(s3.env) });
  try {
    await storage.eraseAllBut('events', () => true, at(second));
  } finally {
    storage.close();
  }
}

describe('unfinished uploads to a bucket', () => {
  it('are aborted by a purge of their table, except those begun meanwhile', async () => {
    begun('old', 'lake/events/a.parquet', 1);
    begun('young', 'lake/events/b.parquet', 3);
    begun('at once', 'lake/events/c.parquet', 2);
    begun('other table', 'lake/event_items/a.parquet', 1);
    begun('other lake', 'lakes/events/a.parquet', 1);
    await erase(2);
    expect([...s3.uploads.keys()].sort()).toEqual(['at once', 'other lake', 'other table', 'young']);
  });

  it('are aborted on all pages of their list', async () => {
    s3.pageSize = 2;
    for (let n = 0; n < 5; n++) begun(`old ${n}`, `lake/events/${n}.parquet`, 1);
    const young = ['first', 'second', 'third'];
    for (const name of young) begun(name, `lake/events/-${name}.parquet`, 3);
    await erase(2);
    expect([...s3.uploads.keys()]).toEqual(young);
  });

  it('are aborted also when the answer is lost, or their writer was faster', async () => {
    begun('lost', 'lake/events/a.parquet', 1);
    begun('ended', 'lake/events/b.parquet', 1);
    s3.outcomeOf = ({ what, key, attempt }) => {
      if (what !== 'AbortMultipartUpload' || attempt > 1) return 'normal';
      if (key.endsWith('b.parquet')) s3.uploads.delete('ended');
      return key.endsWith('a.parquet') ? 'answer lost' : 'normal';
    };
    await erase(2);
    expect(s3.uploads.size).toBe(0);
  });

  it('are none when the store does not know them, and unknown when it refuses to list them', async () => {
    const answers = (status: number, code: string) => {
      s3.outcomeOf = ({ what }) => (what === 'ListMultipartUploads' ? { status, code } : 'normal');
    };
    answers(501, 'NotImplemented');
    await erase(2);
    answers(400, 'InvalidArgument');
    await expect(erase(2)).rejects.toMatchObject({ message: expect.stringContaining('(400 InvalidArgument)') });
  });

  it('are not reported as aborted while the store refuses it', async () => {
    begun('old', 'lake/events/a.parquet', 1);
    s3.outcomeOf = ({ what }) => (what === 'AbortMultipartUpload' ? { status: 403, code: 'AccessDenied' } : 'normal');
    await expect(erase(2)).rejects.toMatchObject({ kind: 'config' });
  });
});
