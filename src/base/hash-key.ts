import { createHash, createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { Secret } from './secrets.ts';

const CHECK_LENGTH = 16;
const HASH_CHECK_LABEL = 'dfinery-elt hash key check v1';
/** Size of a block of SHA-256 (bytes). */
const BLOCK_BYTES = 64;
const INNER_PAD = 0x36;
const OUTER_PAD = 0x5c;
/** Maximum number of cached hashes. */
const MAX_CACHED = 1 << 16;
/** Maximum length of a value whose hash is cached (bytes). */
const MAX_CACHED_BYTES = 64;

/** A key under which values become HMAC-SHA-256 in hex: those of `columns_hash`, or suppressed people. */
export class HashKey {
  /** Check value of the key: 16 hex digits. It gives away no more of the key than any stored hash does. */
  readonly keyCheck: string;
  /** The key as a block of SHA-256, made as HMAC does. */
  readonly #block: Uint8Array = new Uint8Array(BLOCK_BYTES);
  readonly #key: KeyObject;
  /** Hashes by value as Latin-1. */
  readonly #cache = new Map<string, string>();

  /** `label`: what the check value is made of, so that those of keys for different uses cannot be compared. */
  constructor(key: Secret, label = HASH_CHECK_LABEL) {
    const bytes = Buffer.from(key.reveal());
    this.#key = createSecretKey(bytes);
    this.#block.set(bytes.length > BLOCK_BYTES ? createHash('sha256').update(bytes).digest() : bytes);
    this.keyCheck = this.hashOf(label).slice(0, CHECK_LENGTH);
  }

  /** The hash of a value, which is a text or its UTF-8: 64 hex digits. */
  hashOf(value: string | Uint8Array): string {
    if (typeof value === 'string' || value.length > MAX_CACHED_BYTES) return this.#hash(value);
    const text = Buffer.from(value.buffer, value.byteOffset, value.length).toString('latin1');
    const cachedHash = this.#cache.get(text);
    if (cachedHash !== undefined) return cachedHash;
    if (this.#cache.size === MAX_CACHED) this.#cache.clear();
    const hash = this.#hash(value);
    this.#cache.set(text, hash);
    return hash;
  }

  /** The pads of HMAC in hex, by their names in SQL that computes it. Each of them tells the key. */
  hmacPads(keyName: string): Readonly<Record<string, string>> {
    const padded = (pad: number) => Buffer.from(this.#block.map((byte) => byte ^ pad)).toString('hex');
    return { [`${keyName}_inner_pad`]: padded(INNER_PAD), [`${keyName}_outer_pad`]: padded(OUTER_PAD) };
  }

  #hash(value: string | Uint8Array): string {
    return createHmac('sha256', this.#key).update(value).digest('hex');
  }
}
