import { parseArgs } from 'node:util';
import { configError } from '../../base/errors.ts';
import type { Verb } from './connector.ts';

/** The files that each verb needs; the verbs in the order in which messages name them. */
const NEEDS: Readonly<Record<Verb, readonly ('config' | 'catalog')[]>> = {
  spec: [],
  check: ['config'],
  discover: ['config'],
  read: ['config', 'catalog'],
  write: ['config', 'catalog'],
};
export const VERBS = Object.keys(NEEDS) as Verb[];

/**
 * Parses a connector's command line, as the platform and PyAirbyte spell it. The path of a file that the verb needs is
 * not empty. Throws a config failure for anything that it does not know.
 */
export function parseArguments(words: readonly string[], verbs: readonly Verb[]) {
  const verb = verbs.find((name) => name === words[0]);
  if (verb === undefined) throw configError(`The first word must be a command: wanted one of ${verbs.join(', ')}.`);
  const values = optionsIn(words.slice(1));
  for (const name of NEEDS[verb]) if (!values[name]) throw configError(`${verb} needs --${name} FILE.`);
  const { debug: isDebug = false, config: configPath = '', catalog: catalogPath = '', state: statePath } = values;
  return { verb, isDebug, configPath, catalogPath, statePath };
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
