const QUOTE = 34;

/** A place for the text of cells with doubled quotes; `text` holds the last one from byte 0 on. */
export class Unquoter {
  text = new Uint8Array(1024);

  /** Copies [start, end) with each pair of quotes as one, and returns the length. */
  unquote(b: Uint8Array, start: number, end: number): number {
    if (this.text.length < end - start) this.text = new Uint8Array((end - start) * 2);
    const text = this.text;
    let to = 0;
    for (let i = start; i < end; i++) {
      const c = b[i];
      text[to++] = c;
      if (c === QUOTE) i++;
    }
    return to;
  }
}
