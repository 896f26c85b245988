import { isUtf8 } from 'node:buffer';
import { readFileSync } from 'node:fs';
import { configError, messageOf } from '../base/errors.ts';
import { whyUnreadable } from './disk-failure.ts';

/**
 * Reads and parses a JSON file that the user named. Throws a configuration failure that names `subject` (`the
 * configuration file`) and the path. `mayBeEmpty`: an empty file is undefined, since platforms write one for an absent
 * value.
 */
export function readJsonFile(path: string, subject: string, { mayBeEmpty = false } = {}): unknown {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (cause) {
    throw configError(`${subject} ${path} cannot be read: ${whyUnreadable(cause)}.`, { cause });
  }
  if (!isUtf8(bytes)) throw configError(`${subject} ${path} is not UTF-8: save it as UTF-8.`);
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '');
  if (mayBeEmpty && text.trim() === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw configError(`${subject} ${path} is not valid JSON${faultIn(text, messageOf(error))}.`);
  }
}

/** Where the parser has found a fault, if it says so. Its own message quotes the text there, which may be a token. */
function faultIn(text: string, message: string): string {
  if (message === 'Unexpected end of JSON input') return ': it ends too early';
  const [, position] = /at position (\d+)/.exec(message) ?? [];
  if (position === undefined) return '';
  const lines = text.slice(0, Number(position)).split('\n');
  return `: look at line ${lines.length}, column ${(lines.at(-1) ?? '').length + 1}`;
}
