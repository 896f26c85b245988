import type { SourceConfig } from '../../config/source.ts';

/** `fresh`: through today, read again next time. `settled`: only days that have been over for a while, each once. */
export type Delivery = 'fresh' | 'settled';

/** The effective delivery (S7): `auto` is `settled` for a stream that only appends rows, else `fresh`. */
export const deliveryOf = (configured: SourceConfig['delivery'], isPlainAppend: boolean): Delivery => {
  if (configured !== 'auto') return configured;
  return isPlainAppend ? 'settled' : 'fresh';
};
