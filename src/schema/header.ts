import { COLUMN_SHIFT, DOUBLED, type RowTokenizer, STRIDE } from '../csv/tokenizer.ts';
import { Unquoter } from '../csv/unquote.ts';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });

/** The cells of the tokenizer's last row as strings, the empty ones too. */
export function readNames(b: Uint8Array, tokenizer: RowTokenizer): string[] {
  const { cells, used, width } = tokenizer;
  const names = new Array<string>(width).fill('');
  const unquoter = new Unquoter();
  for (let k = 0; k < used; k += STRIDE) {
    const column = cells[k] >> COLUMN_SHIFT;
    if ((cells[k] & DOUBLED) === 0) names[column] = decoder.decode(b.subarray(cells[k + 1], cells[k + 2]));
    else names[column] = decoder.decode(unquoter.text.subarray(0, unquoter.unquote(b, cells[k + 1], cells[k + 2])));
  }
  return names;
}
