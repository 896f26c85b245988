import { createHmac, createSecretKey } from 'node:crypto';
import type { Secret } from '../base/secrets.ts';

const CHECK_LENGTH = 16;
const CHECK_LABEL = 'dfinery-elt hash key check v1';

/** The key under which the values of `columns_hash` become HMAC-SHA-256 in hex (S47). */
export class HashKey {
  /** Tells one key from another, 16 hex digits. It gives no more of the key away than any stored hash does. */
  readonly check: string;
  readonly #key: ReturnType<typeof createSecretKey>;

  constructor(key: Secret) {
    this.#key = createSecretKey(key.reveal(), 'utf8');
    this.check = this.hashOf(CHECK_LABEL).slice(0, CHECK_LENGTH);
  }

  /** The text that stands for a value, which is a text or its UTF-8: 64 hex digits. */
  hashOf(value: string | Uint8Array): string {
    return createHmac('sha256', this.#key).update(value).digest('hex');
  }
}
