import { isatty } from 'node:tty';
import { configError } from '../base/errors.ts';

export interface Prompts {
  /** A line of text; asked again while `problem` finds something wrong with it. */
  text(question: string, given: string | undefined, problem: (answer: string) => string | undefined): Promise<string>;
  secret(question: string): Promise<string>;
  /** Yes or no; no by default. */
  confirm(question: string): Promise<boolean>;
}

/** Questions on stderr, where stdin and stderr are terminals; elsewhere no question can be asked. */
export function systemPrompts(signal: AbortSignal): Prompts | undefined {
  if (!isatty(0) || !isatty(2)) return undefined;
  return terminalPrompts({ input: process.stdin, output: process.stderr, signal });
}

export function terminalPrompts(streams: {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  readonly signal: AbortSignal;
}): Prompts {
  return {
    async text(question, given, problem) {
      const { default: input } = await import('@inquirer/input');
      const validate = (answer: string) => problem(answer.trim()) ?? true;
      const asked = { message: question, required: true, validate, ...(given !== undefined && { default: given }) };
      return (await input(asked, streams).catch(refuseExit)).trim();
    },
    async secret(question) {
      const { default: password } = await import('@inquirer/password');
      const validate = (answer: string) => answer.trim() !== '' || 'It is empty.';
      return (await password({ message: question, mask: true, validate }, streams).catch(refuseExit)).trim();
    },
    async confirm(question) {
      const { default: confirm } = await import('@inquirer/confirm');
      return confirm({ message: question, default: false }, streams).catch(refuseExit);
    },
  };
}

/** Turns Ctrl-C and Ctrl-D at a question into a failure. */
function refuseExit(error: unknown): never {
  if (error instanceof Error && error.name === 'ExitPromptError') {
    throw configError('ended at a question; nothing was written.', { cause: error });
  }
  throw error;
}
