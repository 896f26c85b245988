import { configFailure } from '../../base/errors.ts';
import type { Secret } from '../../base/secrets.ts';
import { isHeaderText } from '../../config/header-text.ts';

/** The text of a token for a header. Throws a configuration failure, naming the key, if it contains characters that a header cannot hold. */
export function headerText(token: Secret, key: string): string {
  const text = token.reveal();
  if (isHeaderText(text)) return text;
  throw configFailure(`${key} is empty, or holds a character that no HTTP header can carry: copy the token again.`);
}
