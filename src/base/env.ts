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

export function setDefaultVariable(name: string, text: string): void {
  process.env[name] ??= text;
}

/**
 * The text of a variable; an empty one counts as not set. Throws UserError for quotes around it: Docker, kubectl and
 * cmd.exe keep them. Also for a line end in anything but JSON.
 */
export function variableText(env: Env, name: string): string | undefined {
  const text = env[name] || undefined;
  if (text !== undefined && /^(["']).*\1$/s.test(text))
    throw configError(`${name} is in quotes, which belong to its value here: remove the quotes.`);
  if (text !== undefined && /[\r\n]/.test(text) && !/^\s*[[{]/.test(text))
    throw configError(`${name} has a line end in its value: remove the line end.`);
  return text;
}

/**
 * A secret from `NAME`, or from the file that `NAME_FILE` names, without a byte order mark and one trailing line end.
 * `name` is the variable that gave it. Throws UserError if both are set, if the file cannot be read, and as
 * `variableText`.
 */
export function secretFrom(env: Env, name: string): { readonly name: string; readonly text: string } | undefined {
  const fileName = `${name}_FILE`;
  const [text, file] = [variableText(env, name), variableText(env, fileName)];
  if (file === undefined) return text === undefined ? undefined : { name, text };
  if (text !== undefined) throw configError(`${name} and ${fileName} are both set, wanted one of them.`);
  try {
    return { name: fileName, text: readFileSync(file, 'utf8').replace(/^\uFEFF|\r?\n$/g, '') };
  } catch (error) {
    // The message of the system shows the path, which may be the secret itself.
    throw configError(`the file that ${fileName} names cannot be read (${codeOf(error)}).`);
  }
}
