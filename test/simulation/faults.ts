import { addDays } from '../../src/base/days.ts';
import { START } from './common.ts';

/** Faults of exports, as the simulator names them, the mildest first. Every run has to cope with them. */
export const EXPORT_FAULTS: readonly Readonly<Record<string, unknown>>[] = [
  { kind: 'slow', bytes_per_s: 20_000 },
  { kind: 'bom' },
  { kind: 'crlf' },
  { kind: 'status', status: 500 },
  { kind: 'status', status: 503 },
  { kind: 'status', status: 504 },
  { kind: 'status', status: 408, body: '' },
  { kind: 'rate_limit', reset_in_s: 600 },
  { kind: 'rate_limit', reset: 'absent' },
  { kind: 'rate_limit', reset_in_s: -600 },
  { kind: 'rate_limit', remaining: 40, reset_in_s: 900 },
  { kind: 'refuse' },
  { kind: 'reset', at_byte: 0 },
  { kind: 'reset', at: 'mid_row' },
  { kind: 'reset', at: 'between_rows' },
  { kind: 'drop', at: 'mid_row' },
  { kind: 'drop', at: 'mid_quote', after_rows: 0 },
  { kind: 'drop', at: 'between_rows', after_rows: 1 },
  { kind: 'drop', at: 'between_rows', after_rows: 3 },
  { kind: 'reset', at: 'between_rows', after_rows: 2 },
  { kind: 'wrong_length', by: 1 },
  { kind: 'cut', at: 'mid_row' },
  { kind: 'cut', at: 'mid_row', after_rows: 3 },
  { kind: 'cut', at: 'mid_quote', after_rows: 0 },
  { kind: 'cut', at_byte: 40 },
  { kind: 'stall', at: 'mid_row', after_rows: 1 },
  { kind: 'stall', at_byte: 0 },
  { kind: 'json_200' },
  { kind: 'json_200', content_type: 'text/csv' },
  { kind: 'json_tail' },
  { kind: 'json_tail', after_rows: 2 },
  { kind: 'empty_body' },
  { kind: 'wrong_length', by: 100 },
  { kind: 'wrong_length', by: -25 },
  { kind: 'row_short', row: 1 },
  { kind: 'row_long', row: 2 },
];

/** Faults of deletions. */
export const DELETE_FAULTS: readonly Readonly<Record<string, unknown>>[] = [
  { kind: 'status', status: 500 },
  { kind: 'status', status: 503 },
  { kind: 'code', code: '50000' },
  { kind: 'code', code: '40401' },
  { kind: 'rate_limit', reset_in_s: 20 },
  { kind: 'reset', at_byte: 0 },
  { kind: 'refuse' },
  { kind: 'cut_after' },
  { kind: 'stall', for_s: 30 },
];

/**
 * Two truncated bodies of one day, each cut right before the line end of another row: neither may be taken for a whole body.
 */
export const twoCuts = ([day, first, more]: readonly [number, number, number]): Readonly<Record<string, unknown>>[] =>
  [first, first + 1 + more].map((rows) => ({
    kind: 'cut',
    at: 'row_end',
    after_rows: rows,
    when: { operation: 'export', day: addDays(START, day), times: 1 },
  }));

/** A limit that lasts longer than all retries: a run waits for it. */
export const LIMITED: Readonly<Record<string, unknown>> = {
  kind: 'rate_limit',
  reset: 'absent',
  when: { operation: 'delete', times: 8 },
};

/** Deletions after the first one have to be retried. */
export const FAILING: readonly Readonly<Record<string, unknown>>[] = [
  { kind: 'status', status: 503, when: { operation: 'delete', nth: [2, 3, 4] } },
];
