import { type BrokenReason, MAX_COLUMNS } from './tokenizer.ts';

export const AT_MOST_COLUMNS = `at most ${MAX_COLUMNS} columns`;

/** What was expected and what was found where the tokenizer cannot go on, for messages. */
export const BROKEN_ROW = {
  quote_in_cell: { expected: 'a comma or a line end before any quote', found: 'a quote' },
  after_quote: { expected: 'a comma or a line end after the closing quote', found: 'text' },
  cut_in_quote: { expected: 'a closing quote', found: 'the end of the body' },
  too_many_columns: { expected: AT_MOST_COLUMNS, found: 'more' },
} as const satisfies Record<BrokenReason, { readonly expected: string; readonly found: string }>;
