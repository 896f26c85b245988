// What the modules share about bytes.

import { ZERO } from '../src/base/ascii';

const LANES: i32 = 16;

/** The result of a function for what TypeScript must read or write itself. */
export const NOT_PLAIN: i32 = -3;

/** Sets an entry of `CsvMemory.info`, which begins at byte 0. */
export function setInfo(entry: i32, value: i32): void {
  store<i32>((<usize>entry) << 2, value);
}

export function getInfo(entry: i32): i32 {
  return load<i32>((<usize>entry) << 2);
}

/** Copies `length` bytes and returns where they end; up to fifteen bytes more may be overwritten. */
export function copy(from: usize, length: i32, to: usize): usize {
  for (let i = 0; i < length; i += LANES) v128.store(to + <usize>i, v128.load(from + <usize>i));
  return to + <usize>length;
}

export function byteAt(at: usize): i32 {
  return <i32>load<u8>(at);
}

export function isDigit(c: i32): bool {
  return <u32>(c - ZERO) <= 9;
}
