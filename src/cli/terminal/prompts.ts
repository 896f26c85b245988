import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { nextTurn } from '../../base/clock.ts';
import { configError } from '../../base/errors.ts';
import { Stopped } from '../../base/process.ts';

export interface Prompts {
  /** A line of text. Empty is the `defaultAnswer`. */
  text(question: string, defaultAnswer?: string): Promise<string>;
  /** A line that is not shown. */
  secret(question: string): Promise<string>;
  /** Yes or no; no by default. */
  confirm(question: string): Promise<boolean>;
}

export function terminalPrompts(
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  signal: AbortSignal,
): Prompts {
  const ask = async (question: string, isHidden = false): Promise<string> => {
    // What was logged before the question is written first.
    await nextTurn();
    if (isHidden) output.write(question);
    const echo = isHidden ? new Writable({ write: (_chunk, _encoding, done) => done() }) : output;
    const readline = createInterface({ input, output: echo, terminal: true });
    try {
      return await new Promise((resolve, reject) => {
        readline.once('SIGINT', () => reject(new Stopped('SIGINT')));
        // Ctrl-D closes the input.
        readline.once('close', () => reject(configError('ended at a question; nothing was written.')));
        readline.question(isHidden ? '' : question, { signal }).then((answer) => resolve(answer.trim()), reject);
      });
    } finally {
      readline.close();
      if (isHidden) output.write('\n');
    }
  };
  return {
    async text(question, defaultAnswer = '') {
      const hint = defaultAnswer === '' ? '' : ` [${defaultAnswer}]`;
      return (await ask(`${question}${hint}: `)) || defaultAnswer;
    },
    secret: (question) => ask(`${question}: `, true),
    confirm: async (question) => /^y(es)?$/i.test(await ask(`${question} [y/N]: `)),
  };
}
