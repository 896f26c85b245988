/** These bytes, copied into an array of at least twice the length if there are fewer than `needed`. */
export function withRoom(bytes: Uint8Array<ArrayBuffer>, needed: number): Uint8Array<ArrayBuffer> {
  if (needed <= bytes.length) return bytes;
  const larger = new Uint8Array(Math.max(needed, bytes.length * 2));
  larger.set(bytes);
  return larger;
}

/** The same for numbers. */
export function withRows(numbers: Int32Array<ArrayBuffer>, needed: number): Int32Array<ArrayBuffer> {
  if (needed <= numbers.length) return numbers;
  const larger = new Int32Array(Math.max(needed, numbers.length * 2));
  larger.set(numbers);
  return larger;
}
