import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import { baseUrlProblem, credentialsError, hasCredentials } from '../../base/address.ts';
import { secretFrom } from '../../base/env.ts';
import { configError, messageOf, UserError } from '../../base/errors.ts';
import { Secret } from '../../base/secrets.ts';
import { shellWord } from '../../base/text.ts';
import { isZoneName } from '../../cells/types/zone.ts';
import { UNKNOWN_ZONE } from '../../config/source.ts';
import { withDiskErrors } from '../../fs/disk-failure.ts';
import { checkLocalPath, realOrGivenPath } from '../../fs/local-path.ts';
import { writeNamedFile } from '../../fs/named-file.ts';
import { PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import { type CheckVerdict, checkService } from '../../service/check.ts';
import { TARGETS } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import { CONFIG_FILE, pathInFolder, readConfiguration, requireExportKeys } from '../configuration.ts';
import type { Context } from '../context.ts';
import { checkedTarget, placeUsage } from '../places.ts';
import type { Prompts } from '../terminal/prompts.ts';

export const command = defineCommand({
  examples: ['init', 'init --config staging.json'],
  docsPage: 'configuration.md',
  async run({ config: path = CONFIG_FILE }, context) {
    const { prompts } = context;
    if (prompts === undefined)
      throw configError('init asks questions, and there is no terminal here: write dfinery.json, or set variables.');
    // Else the answers would be lost after the last question.
    const subject = `the file ${path}`;
    await withDiskErrors({ subject, path }, access(dirname(realOrGivenPath(path)), constants.W_OK));
    if (existsSync(path) && !(await prompts.confirm(`${path} is there already. Replace the whole file?`)))
      throw configError(`${path} stays as it is: name another file with --config.`);
    const service = await askService(prompts, context);
    const place = await askPlace(prompts, dirname(path));
    const erasure = await askErasure(prompts);
    const text = `${JSON.stringify({ ...service, ...place, ...erasure }, null, 2)}\n`;
    await writeNamedFile(path, text, subject, 'configuration', PRIVATE_FILE_MODE);
    return { result: { v: 1, file: path }, lines: nextSteps(path, erasure !== undefined) };
  },
});

/** Asks for the service, and tries the answers as `check` does until they are right. Enter keeps an answer. */
async function askService(prompts: Prompts, context: Context) {
  let base_url = context.env.DFINERY_BASE_URL || undefined;
  let service_id = context.env.DFINERY_SERVICE_ID || undefined;
  let token = secretFrom(context.env, 'DFINERY_EXPORT_TOKEN')?.text;
  for (;;) {
    base_url = await prompts.text('Address of the Open API', base_url, baseUrlProblem);
    service_id = await prompts.text('Service ID', service_id);
    token ??= await prompts.secret('Export API token (not shown, not written to the file)');
    context.redactor.add(new Secret(token));
    const { kind, message } = await tryAnswers({ base_url, service_id, export_token: token }, context);
    if (kind === 'usable') context.logger.info('init.accepted', message);
    else context.logger.warn('init.refused', message);
    // A service that is away says nothing of the answers.
    if (kind === 'usable' || (kind === 'later' && (await prompts.confirm('Keep these answers all the same?'))))
      return { base_url, service_id };
    token = undefined;
  }
}

/** The verdict of `check` on the answers, or why they cannot be sent. */
async function tryAnswers(answers: object, context: Context): Promise<Pick<CheckVerdict, 'kind' | 'message'>> {
  try {
    return await checkService(requireExportKeys(readConfiguration(answers, context)), context);
  } catch (error) {
    if (error instanceof UserError && error.kind === 'config') return { kind: 'config', message: error.message };
    throw error;
  }
}

/** Asks where the events go, and for what the first load fixes. A path is relative to the folder of the file. */
async function askPlace(prompts: Prompts, folder: string) {
  const question = `Where the events go: ${placeUsage(TARGETS)}`;
  const answer = await prompts.text(question, 'duckdb events.duckdb', (text) => placeProblem(text, folder));
  const { target, place } = placeIn(answer);
  const zone = await prompts.text(
    'Time zone of the times in the export, such as Asia/Seoul (empty: they stay without one)',
    '',
    (name) => (name === '' || isZoneName(name) ? undefined : UNKNOWN_ZONE),
  );
  return { target, place, ...(zone !== '' && { timezone: zone }) };
}

/** The target is the first word. A path may have blanks. */
function placeIn(answer: string): { target: string; place: string } {
  const [, target = '', place = ''] = /^(\S*)\s*(.*)$/s.exec(answer.trim()) ?? [];
  return { target, place };
}

function placeProblem(answer: string, folder: string): string | undefined {
  const { target, place } = placeIn(answer);
  if (place === '') return `wanted ${placeUsage(TARGETS)}`;
  if (hasCredentials(place)) return credentialsError('the address').message;
  return problemOf(() => checkedTarget(target, place, TARGETS, { folder }));
}

/** Why an answer cannot be used: the message of the check that refuses it. */
function problemOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

/** Asks what `forget` and the syncs after it need; undefined if nobody is to be erased. */
async function askErasure(prompts: Prompts) {
  if (!(await prompts.confirm('Will you also erase people from what is loaded?'))) return undefined;
  const question = 'Folder of the ledger, which proves erasures, and of the list that keeps people away';
  const folderProblem = (path: string) => problemOf(() => checkLocalPath(pathInFolder(path, '.')));
  return { erasure: { ledger_dir: await prompts.text(question, 'ledger', folderProblem) } };
}

function nextSteps(path: string, isErasing: boolean): string[] {
  const configOption = path === CONFIG_FILE ? '' : ` --config ${shellWord(path)}`;
  return [
    `${path} has all but the secrets. Each run takes those from its environment:`,
    '  export DFINERY_EXPORT_TOKEN=…   # or DFINERY_EXPORT_TOKEN_FILE=FILE',
    ...(isErasing ? ['  export DFINERY_IMPORT_TOKEN=…   # for forget'] : []),
    'How to go on',
    `  npx dfinery-elt plan${configOption}             # days and exports`,
    `  npx dfinery-elt sync${configOption}             # as often as you like`,
    ...(isErasing ? [`  npx dfinery-elt forget --id ID${configOption}   # the plan; nothing is erased`] : []),
  ];
}
