import { readFileSync } from 'node:fs';
import { codeOf, configError } from './errors.ts';

/** The variables of the environment: injected, so that nothing else touches `process.env`. */
export type Env = Readonly<Record<string, string | undefined>>;

export const systemEnv: Env = process.env;

/** Removes NODE_TLS_REJECT_UNAUTHORIZED=0, which accepts any certificate; says so if it was set. */
export function enforceCertificateChecks(): string | undefined {
  if (process.env.NODE_TLS_REJECT_UNAUTHORIZED !== '0') return undefined;
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  return 'NODE_TLS_REJECT_UNAUTHORIZED=0 is not obeyed: certificates are always checked. Name a further authority in NODE_EXTRA_CA_CERTS.';
}

export function setProcessVariableUnlessSet(name: string, text: string): void {
  process.env[name] ??= text;
}

/** A variable that is set. Of a secret `name` is that of the variable that gave it. */
type Variable = { readonly name: string; readonly text: string };

/**
 * A variable; an empty one counts as not set. Throws UserError for quotes around its text: Docker, kubectl and cmd.exe
 * keep them. Also for a line end in anything but JSON.
 */
export function variableFrom(env: Env, name: string): Variable | undefined {
  const text = env[name];
  if (text === undefined || text === '') return undefined;
  if (/^(["']).*\1$/s.test(text))
    throw configError(`${name} is in quotes, which belong to its value here: remove the quotes.`);
  if (/[\r\n]/.test(text) && !/^\s*[[{]/.test(text))
    throw configError(`${name} has a line end in its value: remove the line end.`);
  return { name, text };
}

/**
 * A secret from `NAME`, or from the file that `NAME_FILE` names, without a byte order mark and one trailing line end.
 * Throws UserError if both are set, if the file is empty or cannot be read, and as `variableFrom`.
 */
export function secretFrom(env: Env, name: string): Variable | undefined {
  const variable = variableFrom(env, name);
  const file = variableFrom(env, `${name}_FILE`);
  if (file === undefined) return variable;
  if (variable !== undefined) throw configError(`${name} and ${file.name} are both set, wanted one of them.`);
  let text: string;
  try {
    text = readFileSync(file.text, 'utf8').replace(/^\uFEFF|\r?\n$/g, '');
  } catch (error) {
    // The message of the system shows the path, which may be the secret itself.
    throw configError(`the file that ${file.name} names cannot be read (${codeOf(error)}).`);
  }
  if (text === '') throw configError(`the file that ${file.name} names is empty.`);
  return { name: file.name, text };
}
