import { constants, existsSync } from 'node:fs';
import { access } from 'node:fs/promises';
import { dirname } from 'node:path';
import { credentialsError, hasCredentials } from '../../base/address.ts';
import { secretFrom } from '../../base/env.ts';
import { configError } from '../../base/errors.ts';
import { shellWord } from '../../base/text.ts';
import { withDiskErrors } from '../../fs/disk-failure.ts';
import { realOrGivenPath } from '../../fs/local-path.ts';
import { writeNamedFile } from '../../fs/named-file.ts';
import { PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import { TARGETS } from '../../targets/targets.ts';
import { defineCommand } from '../command.ts';
import { CONFIG_FILE } from '../configuration.ts';
import { placeUsage } from '../places.ts';
import type { Prompts } from '../terminal/prompts.ts';
import { tryConfiguration } from './check.ts';

export const command = defineCommand({
  examples: ['init', 'init --config staging.json'],
  docsPage: 'configuration.md',
  async run({ config: path = CONFIG_FILE }, context) {
    const { prompts, env, logger } = context;
    if (prompts === undefined)
      throw configError('init asks questions, and there is no terminal here: write dfinery.json, or set variables.');
    // Else the answers would be lost after the last question.
    const subject = `the file ${path}`;
    await withDiskErrors({ subject, path }, access(dirname(realOrGivenPath(path)), constants.W_OK));
    if (existsSync(path) && !(await prompts.confirm(`${path} is there already. Replace the whole file?`)))
      throw configError(`${path} stays as it is: name another file with --config.`);
    const base_url = await prompts.text('Address of the Open API', env.DFINERY_BASE_URL);
    const service_id = await prompts.text('Service ID', env.DFINERY_SERVICE_ID);
    const token =
      secretFrom(env, 'DFINERY_EXPORT_TOKEN') === undefined
        ? { DFINERY_EXPORT_TOKEN: await prompts.secret('Export API token (not shown, not written to the file)') }
        : {};
    const place = await askPlace(prompts);
    const erasure = await askErasure(prompts);
    // The file holds no key, also not until an address is corrected there.
    for (const [key, answer] of Object.entries({ base_url, service_id, ...place, ...erasure }))
      if (hasCredentials(answer)) throw credentialsError(key);
    const text = `${JSON.stringify({ base_url, service_id, ...place, erasure }, null, 2)}\n`;
    await writeNamedFile(path, text, subject, 'configuration', PRIVATE_FILE_MODE);
    logger.info('init.written', `${path} is written, and is tried now. A wrong answer can be corrected there.`);
    const { message, exitCode } = await tryConfiguration(path, { ...context, env: { ...env, ...token } });
    return { result: { v: 1, file: path }, lines: [message, ...nextSteps(path, erasure !== undefined)], exitCode };
  },
});

/** Asks where the events go, and for what the first load fixes. A path is relative to the folder of the file. */
async function askPlace(prompts: Prompts) {
  const answer = await prompts.text(`Where the events go: ${placeUsage(TARGETS)}`, 'duckdb events.duckdb');
  // The target is the first word. A path may have blanks.
  const [, target, place] = /^(\S*)\s*(.*)$/s.exec(answer) ?? [];
  const question = 'Time zone of the times in the export, such as Asia/Seoul (empty: they stay without one)';
  return { target, place, timezone: (await prompts.text(question)) || undefined };
}

/** Asks what `forget` and the syncs after it need; undefined if nobody is to be erased. */
async function askErasure(prompts: Prompts) {
  if (!(await prompts.confirm('Will you also erase people from what is loaded?'))) return undefined;
  const question = 'Folder of the ledger, which proves erasures, and of the list that keeps people away';
  return { ledger_dir: await prompts.text(question, 'ledger') };
}

function nextSteps(path: string, isErasing: boolean): string[] {
  const configOption = path === CONFIG_FILE ? '' : ` --config ${shellWord(path)}`;
  return [
    `${path} has all but the secrets. Each run takes those from its environment:`,
    '  export DFINERY_EXPORT_TOKEN=…   # or DFINERY_EXPORT_TOKEN_FILE=FILE',
    ...(isErasing ? ['  export DFINERY_IMPORT_TOKEN=…   # for forget'] : []),
    'How to go on',
    `  npx dfinery-elt check${configOption}            # tries the file again`,
    `  npx dfinery-elt plan${configOption}             # days and exports`,
    `  npx dfinery-elt sync${configOption}             # as often as you like`,
    ...(isErasing ? [`  npx dfinery-elt forget --id ID${configOption}   # the plan; nothing is erased`] : []),
  ];
}
