import { createHash, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { Secret } from '../../base/secrets.ts';
import { SHA_BLOCK_BYTES } from '../csv/layout.ts';

const CHECK_LENGTH = 16;
const CHECK_LABEL = 'dfinery-elt hash key check v1';

/** The key under which the values of `columns_hash` become HMAC-SHA-256 in hex. */
export class HashKey {
  /** Check value of the key: 16 hex digits. It gives away no more of the key than any stored hash does. */
  readonly check: string;
  /** The key as a block of SHA-256, made as HMAC does. */
  readonly block: Uint8Array = new Uint8Array(SHA_BLOCK_BYTES);
  readonly #key: KeyObject;

  constructor(key: Secret) {
    const bytes = Buffer.from(key.reveal());
    this.#key = createSecretKey(bytes);
    this.block.set(bytes.length > SHA_BLOCK_BYTES ? createHash('sha256').update(bytes).digest() : bytes);
    this.check = this.hashOf(CHECK_LABEL).slice(0, CHECK_LENGTH);
  }

  /** The hash of a value, which is a text or its UTF-8: 64 hex digits. */
  hashOf(value: string | Uint8Array): string {
    return createHmac('sha256', this.#key).update(value).digest('hex');
  }
}
