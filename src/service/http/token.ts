import { configFailure } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';

const HEADER_TEXT = /^[\x21-\x7e\x80-\xff]([\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?$/;

/** The text of a token for a header. Throws a configuration failure, naming the key, where no header can carry it. */
export function headerText(token: Secret, key: string): string {
  const text = token.reveal();
  if (HEADER_TEXT.test(text)) return text;
  throw configFailure(`${key} is empty, or holds a character that no HTTP header can carry: copy the token again.`);
}
