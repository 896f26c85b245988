import { existsSync } from 'node:fs';
import schema from '../../../schemas/source-config.json' with { type: 'json' };
import { configError, EXIT, type ExitCode } from '../../base/errors.ts';
import { baseUrlProblem } from '../../config/base-url.ts';
import { readEnvironment, variableOf } from '../../config/environment.ts';
import { parseSourceConfig } from '../../config/source.ts';
import { createFile, replaceFile } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { defineCommand, flag, text, type ValuesOf } from '../command.ts';
import { CONFIG_FILE } from '../configuration.ts';
import type { Context } from '../context.ts';
import type { Prompts } from '../prompts.ts';
import { checkSource } from './check.ts';

const OPTIONS = {
  baseUrl: text('Address of the Open API; else DFINERY_BASE_URL, else asked'),
  serviceId: text('The service; else DFINERY_SERVICE_ID, else asked'),
  yes: flag('Ask nothing: options and environment are enough'),
  overwrite: flag('With --yes: replace a file that is there'),
};

export const command = defineCommand({
  options: OPTIONS,
  examples: ['init', 'init --config staging.json'],
  page: 'configuration.md',
  async run({ config: path = CONFIG_FILE, yes, overwrite, ...given }, context) {
    const prompts = yes ? undefined : requirePrompts(context);
    const exists = existsSync(path);
    if (exists) await allowReplacing(path, overwrite, prompts);
    const answers = await gather(given, prompts, context);
    const code = await checkAnswers(answers, context);
    if (code !== EXIT.done) {
      context.logger.warn('init.refused', `${path} was not written.`);
      return code;
    }
    await write(path, answers, exists);
    for (const line of nextSteps(path)) context.terminal.result(line);
    return EXIT.done;
  },
});

function requirePrompts({ prompts }: Context): Prompts {
  if (prompts !== undefined) return prompts;
  throw configError(
    'init asks questions, and there is no terminal here: give --yes with --base-url, --service-id and DFINERY_EXPORT_TOKEN.',
  );
}

async function allowReplacing(path: string, isAllowed: boolean, prompts: Prompts | undefined): Promise<void> {
  const allowed = prompts ? await prompts.confirm(`${path} is there already. Replace the whole file?`) : isAllowed;
  if (allowed) return;
  throw configError(`${path} is there already and stays as it is: name another file, or replace it with --overwrite.`);
}

type Answers = Readonly<Record<'base_url' | 'service_id' | 'export_token', string>>;

/** Options first, then the environment, then questions. */
async function gather(
  { baseUrl, serviceId }: Pick<ValuesOf<typeof OPTIONS>, 'baseUrl' | 'serviceId'>,
  prompts: Prompts | undefined,
  { env }: Context,
): Promise<Answers> {
  const { values } = readEnvironment(schema, env);
  const known = (key: string, option?: string) => option ?? (typeof values[key] === 'string' ? values[key] : undefined);
  const base = known('base_url', baseUrl);
  const service = known('service_id', serviceId);
  const token = known('export_token');
  if (prompts === undefined) refuseMissing({ base_url: base, service_id: service, export_token: token });
  return {
    base_url: (await prompts?.text('Address of the Open API', base, (one) => baseUrlProblem(one)?.text)) ?? base ?? '',
    service_id: (await prompts?.text('Service ID', service, () => undefined)) ?? service ?? '',
    export_token: token ?? (await prompts?.secret('Export API token (it is not written to the file)')) ?? '',
  };
}

function refuseMissing(found: Readonly<Record<string, string | undefined>>): void {
  const missing = Object.keys(found).filter((key) => found[key] === undefined);
  if (missing.length === 0) return;
  const named = missing.map((key) =>
    key === 'export_token'
      ? `${variableOf(key)} (or ${variableOf(key)}_FILE)`
      : `--${key.replaceAll('_', '-')} or ${variableOf(key)}`,
  );
  throw configError(`init --yes asks nothing, and lacks ${named.join(', ')}.`);
}

/** Checks the answers as `dfinery-elt check` does, with all other keys taken from the environment. */
async function checkAnswers(answers: Answers, context: Context): Promise<ExitCode> {
  const { values, names } = readEnvironment(schema, context.env);
  const { config, secrets } = parseSourceConfig({ ...values, ...answers }, () => undefined, names);
  for (const secret of secrets) context.redactor.add(secret);
  const { sentence, code } = await checkSource(config, context);
  context.terminal.result(sentence);
  return code;
}

async function write(path: string, { base_url, service_id }: Answers, exists: boolean): Promise<void> {
  const json = `${JSON.stringify({ base_url, service_id }, null, 2)}\n`;
  try {
    if (exists) return await replaceFile(path, json);
    if (await createFile(path, json, { mayRename: true })) return;
  } catch (error) {
    throw diskError(error, { what: `the file ${path}`, path });
  }
  throw configError(`${path} was created by another process in the meantime, and was not changed.`);
}

const nextSteps = (path: string): string[] => {
  const named = path === CONFIG_FILE ? '' : ` --config ${path}`;
  return [
    `${path} has all but the token. Each run gets that from its environment:`,
    '  export DFINERY_EXPORT_TOKEN=…   or DFINERY_EXPORT_TOKEN_FILE=… (its file)',
    'How to go on',
    `  dfinery-elt plan${named}                        its days, exports and time`,
    `  dfinery-elt sync duckdb events.duckdb${named}   again and again: what is new is read`,
  ];
};
