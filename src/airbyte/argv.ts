import { configFailure } from '../base/errors.ts';

const VERBS = ['spec', 'check', 'discover', 'read', 'write'] as const;
export type Verb = (typeof VERBS)[number];

/** A connector's command line, as the platform and PyAirbyte spell it. Values are paths of files. */
export interface Arguments {
  readonly verb: Verb;
  readonly config: string | undefined;
  readonly catalog: string | undefined;
  readonly state: string | undefined;
  readonly isDebug: boolean;
}

const FILES = ['config', 'catalog', 'state'] as const;
const NEEDED = {
  spec: [],
  check: ['config'],
  discover: ['config'],
  read: ['config', 'catalog'],
  write: ['config', 'catalog'],
} as const satisfies Record<Verb, readonly (typeof FILES)[number][]>;

/** Parses the words after the program's name; throws a config failure for anything that is not understood. */
export function parseArguments(words: readonly string[], verbs: readonly Verb[]): Arguments {
  const verb = verbs.find((one) => one === words[0]);
  if (verb === undefined) {
    const given = words[0] === undefined ? 'No command was given' : 'The first word is no command of this connector';
    throw configFailure(`${given}: wanted one of ${verbs.join(', ')}.`);
  }
  const found = { config: undefined, catalog: undefined, state: undefined } as Record<string, string | undefined>;
  let isDebug = false;
  for (let i = 1; i < words.length; i++) {
    const [, name, inline] = /^--([a-z-]+)(?:=(.*))?$/s.exec(words[i] ?? '') ?? [];
    if (name === 'debug') isDebug = true;
    else if (FILES.some((file) => file === name)) found[name] = inline ?? valueAfter(words, i++);
    else throw configFailure(`${shown(name, i)} is not understood: wanted --config, --catalog or --state.`);
  }
  for (const name of NEEDED[verb]) if (!found[name]) throw configFailure(`${verb} needs --${name} FILE.`);
  return { verb, config: found.config, catalog: found.catalog, state: found.state, isDebug };
}

/** Never the value of an option or a loose word: it may be a token that does not belong here. */
const shown = (option: string | undefined, index: number): string =>
  option === undefined ? `Word ${index + 1} of the command line` : `The option --${option}`;

function valueAfter(words: readonly string[], index: number): string {
  const value = words[index + 1];
  if (value === undefined) throw configFailure(`${words[index]} needs the path of a file after it.`);
  return value;
}
