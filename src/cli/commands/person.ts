import { open, rm } from 'node:fs/promises';
import { abortable } from '../../base/abort.ts';
import { configError, EXIT } from '../../base/errors.ts';
import { unseparatedCount } from '../../base/quantities.ts';
import { showPeople } from '../../erasure/show-people.ts';
import { withDiskErrors } from '../../fs/disk-failure.ts';
import { PRIVATE_FILE_MODE } from '../../fs/permissions.ts';
import { defineCommand, pathOption } from '../command.ts';
import { readConfiguration, requireKeys } from '../configuration.ts';
import { PEOPLE_OPTIONS, readIdList, withPeopleSearch } from '../people-options.ts';

export const command = defineCommand({
  options: {
    ...PEOPLE_OPTIONS,
    output: { ...pathOption('A new file (mode 0600); default: stdout'), short: 'o' },
  },
  examples: [
    'person --id A-1001 --in duckdb f.duckdb --by-column member',
    'person --file people.csv --column member -o rows.jsonl',
  ],
  docsPage: 'erasure.md',
  async run(values, context) {
    const config = readConfiguration(values.config, context);
    const ledgerSettings = config.ledgerDir === undefined ? undefined : requireKeys(config, 'base_url', 'service_id');
    const { ids, rows } = await withPeopleSearch(values, config, context, async (search) => {
      if (search.places.length === 0)
        throw configError('person needs --in TARGET PLACE, or erasure.places: where to look.');
      const list = await readIdList(values, context.signal);
      const show = (write: WriteLine) => showPeople(list, search, ledgerSettings, write);
      const { output = '-' } = values;
      const print: WriteLine = (line) => abortable(context.terminal.print(line), context.signal);
      return output === '-' ? show(print) : withNewFile(output, show);
    });
    context.logger.info('person.done', `${unseparatedCount(rows, 'row')} about ${unseparatedCount(ids, 'ID')}.`);
    return { result: { v: 1, kind: 'access', ids, rows, exit: EXIT.done, error: null }, lines: [] };
  },
});

type WriteLine = (line: string) => Promise<void>;

/** Gives `work` a new file (0600) to write; none is replaced. The file stays only if all of it is on disk. */
async function withNewFile<T>(path: string, work: (write: WriteLine) => Promise<T>): Promise<T> {
  const file = await withDiskErrors({ path }, open(path, 'wx', PRIVATE_FILE_MODE));
  try {
    const result = await work((line) => withDiskErrors({ path }, file.writeFile(`${line}\n`)));
    await withDiskErrors({ path }, file.datasync());
    await file.close();
    return result;
  } catch (error) {
    // The first failure is the one to tell.
    await file.close().catch(() => {});
    await rm(path, { force: true });
    throw error;
  }
}
