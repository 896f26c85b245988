/** A text in one form: `é` as one character, or as `e` and an accent, is the same text. */
export const nfc = (text: string): string => text.normalize('NFC');

/** Compares texts by their bytes in UTF-8. */
export const compareUtf8 = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));
