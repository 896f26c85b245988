import type { Env } from '../../base/env.ts';
import { parseAddress } from './address.ts';
import { DiskStorage } from './disk.ts';
import { openS3Storage } from './s3.ts';
import type { Storage } from './storage.ts';

/** The place behind an address. Nothing is asked of it yet. Throws Failure for an address of another kind. */
export async function openStorage(text: string, env: Env, signal: AbortSignal | undefined): Promise<Storage> {
  const address = parseAddress(text);
  if (address.kind === 'disk') return new DiskStorage(address.dir);
  return await openS3Storage({ ...address, address: text.replace(/\/+$/, '') }, env, signal);
}
