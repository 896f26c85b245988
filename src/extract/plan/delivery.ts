import type { SourceConfig } from '../../config/source.ts';

/** `fresh`: through today, read again next time. `settled`: only days that have been over for a while, each once. */
export type Delivery = 'fresh' | 'settled';

/** The delivery meant (S7): `auto` is settled where rows are only ever appended, fresh everywhere else. */
export const deliveryOf = (configured: SourceConfig['delivery'], isPlainAppend: boolean): Delivery => {
  if (configured !== 'auto') return configured;
  return isPlainAppend ? 'settled' : 'fresh';
};
