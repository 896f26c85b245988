import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { BlockStore } from './block-store.ts';
import type { Stage } from './stage.ts';

const DIGEST_BYTES = 32;
const PARTITIONS = 256;

/** The service a list is meant for: the same ids for another one are another list. */
export interface ListScope {
  readonly baseUrl: string;
  readonly serviceId: string;
}

/**
 * A hash (64 hex digits) of exactly the ids that a stage accepted, each once and in an order of their own, and of where
 * they are to be deleted. Neither the order of the input nor repetitions nor refused rows change it.
 */
export async function listHash(stage: Stage, { baseUrl, serviceId }: ListScope): Promise<string> {
  const store = new BlockStore(tmpdir(), DIGEST_BYTES);
  try {
    for await (const step of stage.steps()) {
      if (step.kind !== 'id' || step.first !== step.number) continue;
      const digest = createHash('sha256').update(step.id).digest();
      const { buffer, at } = store.slot(digest[0] ?? 0);
      digest.copy(buffer, at);
    }
    const hash = createHash('sha256').update(JSON.stringify(['dfinery-elt forget v1', baseUrl, serviceId]));
    for (let partition = 0; partition < PARTITIONS; partition++) {
      for (const digest of sortedOnce(store, partition)) hash.update(digest);
    }
    return hash.digest('hex');
  } finally {
    store.close();
  }
}

function sortedOnce(store: BlockStore, partition: number): Buffer[] {
  const all: Buffer[] = [];
  for (const block of store.blocks(partition)) {
    const copy = Buffer.from(block);
    for (let at = 0; at < copy.length; at += DIGEST_BYTES) all.push(copy.subarray(at, at + DIGEST_BYTES));
  }
  all.sort(Buffer.compare);
  return all.filter((digest, i) => i === 0 || Buffer.compare(digest, all[i - 1]) !== 0);
}
