import { readFileSync } from 'node:fs';

/** The environment as a lookup: injected, so that nothing else touches `process.env`. */
export interface Env {
  (name: string): string | undefined;
  /** The names of all variables that are set, if they are known. */
  readonly names?: () => readonly string[];
}

export const systemEnv: Env = Object.assign((name: string) => process.env[name], {
  names: () => Object.keys(process.env),
});

/** Removes NODE_TLS_REJECT_UNAUTHORIZED=0, which would make TLS accept any certificate. True if it was set. */
export function requireTrustedCertificates(): boolean {
  const wasOff = process.env.NODE_TLS_REJECT_UNAUTHORIZED === '0';
  if (wasOff) delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
  return wasOff;
}

/**
 * The environment for a process that this one starts, without NODE_OPTIONS: it may hold what is meant for this process
 * alone.
 */
export function environmentOfChild(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, ...environment } = process.env;
  return environment;
}

/** Turns off the AWS SDK's warning about old versions of Node, unless the user has: this program pins the SDK. */
export function quietSdkVersionWarning(): void {
  process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
}

export const TRUST_MESSAGE =
  'NODE_TLS_REJECT_UNAUTHORIZED=0 is not obeyed: certificates are always checked. Name a further authority in NODE_EXTRA_CA_CERTS.';

/** The text of the file that holds a secret, without one trailing line end. Throws when unreadable. */
export const secretInFile = (path: string): string => readFileSync(path, 'utf8').replace(/\r?\n$/, '');

/** A secret from `NAME`, or from the file that `NAME_FILE` names. Throws when unreadable. */
export function secretFrom(env: Env, name: string): string | undefined {
  const direct = env(name);
  if (direct !== undefined && direct !== '') return direct;
  const file = env(`${name}_FILE`);
  return file === undefined || file === '' ? undefined : secretInFile(file);
}
