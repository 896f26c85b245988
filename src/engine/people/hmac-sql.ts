import { type HashKey, INNER_PAD, OUTER_PAD } from '../../cells/columns/hash-key.ts';

/** SQL of HMAC-SHA-256 in hex. Its pads are values of the statement: no message of the engine can quote them. */
export const hmacSql = (text: string): string =>
  `sha256(unhex($outer_pad) || unhex(sha256(unhex($inner_pad) || encode(${text}))))`;

/** The pads of a key (hex): the values that `hmacSql` needs. */
export type Pads = Readonly<Record<'inner_pad' | 'outer_pad', string>>;

export function padsOf({ block }: HashKey): Pads {
  const padOf = (pad: number) => Buffer.from(block.map((byte) => byte ^ pad)).toString('hex');
  return { inner_pad: padOf(INNER_PAD), outer_pad: padOf(OUTER_PAD) };
}
