import { inspect } from 'node:util';

const MASK = '******';
const MIN_MASKED_LENGTH = 4;
/** Minimum length of a key of HMACs (characters): under a key that can be guessed, so can what was hashed. */
export const MIN_KEY_LENGTH = 32;

/** A token or key that cannot be printed by accident: every way of turning it into text gives the mask. */
export class Secret {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** The text itself, for the one header or key it belongs in. */
  reveal(): string {
    return this.#text;
  }

  toString(): string {
    return MASK;
  }

  toJSON(): string {
    return MASK;
  }

  [inspect.custom](): string {
    return MASK;
  }
}

/** Replaces every known secret in texts, as it stands and as a URL or JSON spells it. One per run. */
export class Redactor {
  #longestFirst: readonly string[] = [];

  add(secret: Secret | undefined): void {
    const text = secret?.reveal();
    if (text === undefined || text.length < MIN_MASKED_LENGTH) return;
    const forms = [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1)];
    this.#longestFirst = [...new Set([...this.#longestFirst, ...forms])].sort((a, b) => b.length - a.length);
  }

  readonly mask = (text: string): string => {
    let maskedText = text;
    // A secret may begin with another: the rest of the longer one must not stay.
    for (const secret of this.#longestFirst) maskedText = maskedText.replaceAll(secret, MASK);
    return maskedText;
  };
}
