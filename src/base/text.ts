// Texts: in one form, in one order, and as a reader or a shell sees them; lists of names.

/** A text in one form: `é` as one character, or as `e` and an accent, is the same text. */
export const nfc = (text: string): string => text.normalize('NFC');

export const compareUtf8 = (a: string, b: string): number => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** Characters that move a cursor, end a line or turn the direction of a text, and some that show nothing. */
const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\p{Surrogate}/gu;

/**
 * A text from outside as one line that a terminal, a log or a page shows as it is. Each character of UNPRINTABLE
 * becomes its escape, as JSON writes it (`\u001b`). JSON on one line stays the same JSON.
 */
export const printable = (text: string): string =>
  text.replaceAll(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`);

export const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** A clause as a sentence. A first word of lower-case letters alone gets a capital, also the name of a host. */
export const sentenceOf = (clause: string): string =>
  `${/^[a-z]+ /.test(clause) ? capitalized(clause) : clause}${/[.?]$/.test(clause) ? '' : '.'}`;

/** A path as a word of a command line; quoted if a shell would split or change it. */
export const shellWord = (path: string): string =>
  /^[\p{L}\p{N}_@%+=:,./\\-]+$/u.test(path) && (process.platform === 'win32' || !path.includes('\\'))
    ? path
    : `'${path.replaceAll("'", "'\\''")}'`;

/** Maximum number of rows, columns, tables and files that a line of text names. */
export const MAX_NAMED_IN_LINE = 10;
/** The same for JSON, for the ledger, and for a warning of tables and files. */
export const MAX_NAMED_IN_RECORD = 100;
/** Names for a line of text: `a, b`, or the first ones with `and 3 more`. */
export const joinNames = (names: readonly string[], most = MAX_NAMED_IN_LINE): string =>
  `${names.slice(0, most).join(', ')}${names.length > most ? ` and ${names.length - most} more` : ''}`;
