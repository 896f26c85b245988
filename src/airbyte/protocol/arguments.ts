import { parseArgs } from 'node:util';
import { configError } from '../../base/errors.ts';
import type { Verb } from './connector.ts';

/** A connector's command line, as the platform and PyAirbyte spell it, with the paths of the files of its verb. */
interface Arguments {
  readonly verb: Verb;
  readonly isDebug: boolean;
  /** Paths; not empty for a verb that needs the file. */
  readonly config: string;
  readonly catalog: string;
  readonly state: string | undefined;
}

/** The files that each verb needs; the verbs in the order in which messages name them. */
const NEEDS: Readonly<Record<Verb, readonly ('config' | 'catalog')[]>> = {
  spec: [],
  check: ['config'],
  discover: ['config'],
  read: ['config', 'catalog'],
  write: ['config', 'catalog'],
};
export const VERBS = Object.keys(NEEDS) as Verb[];

/** Parses the words after the program's name; throws a config failure for anything that it does not know. */
export function parseConnectorArguments(words: readonly string[], verbs: readonly Verb[]): Arguments {
  const verb = verbs.find((one) => one === words[0]);
  if (verb === undefined) throw configError(`The first word must be a command: wanted one of ${verbs.join(', ')}.`);
  const { debug: isDebug = false, config = '', catalog = '', state } = optionsIn(words.slice(1));
  const options = { verb, isDebug, config, catalog, state };
  for (const name of NEEDS[verb]) if (options[name] === '') throw configError(`${verb} needs --${name} FILE.`);
  return options;
}

function optionsIn(args: string[]) {
  const file = { type: 'string' } as const;
  try {
    return parseArgs({ args, options: { config: file, catalog: file, state: file, debug: { type: 'boolean' } } })
      .values;
  } catch {
    // The message of the parser quotes the unknown word, which may be a token.
    throw configError(
      'The command line is not understood: wanted --config FILE, --catalog FILE, --state FILE, and --debug.',
    );
  }
}
