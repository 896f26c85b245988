import { type FileHandle, open, rm } from 'node:fs/promises';
import { codeOf, configError, EXIT, messageOf } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { showPeople } from '../../erasure/show-people.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { OWNER_FILE_MODE } from '../../fs/permissions.ts';
import { defineCommand, text } from '../command.ts';
import { CliConfiguration } from '../configuration.ts';
import { listRowsOf, openSearch, PEOPLE_OPTIONS } from '../erasure-options.ts';

export const command = defineCommand({
  options: {
    ...PEOPLE_OPTIONS,
    output: { ...text('A new file (mode 0600); default: stdout'), short: 'o' },
  },
  examples: [
    'person --id A-1001 --in duckdb f.duckdb --by-column member',
    'person --file people.csv --column member -o rows.jsonl',
  ],
  page: 'erasure.md',
  async run(values, context) {
    const configuration = new CliConfiguration(values.config, context);
    const erasure = configuration.erasure();
    const { search, close } = openSearch(values, configuration, context);
    if (search.places.length === 0)
      throw configError('person needs --in TARGET PLACE, or erasure.places: where to look.');
    const list = listRowsOf(values, undefined);
    const path = values.output === '-' ? undefined : values.output;
    const file = path === undefined ? undefined : await newFile(path);
    try {
      const { ids, rows } = await showPeople({
        rows: list,
        search,
        io: context,
        ledger: erasure.ledgerDir === undefined ? undefined : { ...erasure, ...configuration.service() },
        async write(line) {
          if (file === undefined) context.terminal.result(line);
          else await onDisk(path, file.writeFile(`${line}\n`));
        },
      });
      await onDisk(path, file?.datasync());
      await file?.close();
      context.logger.info('person.done', `${plainCount(rows, 'row')} about ${plainCount(ids, 'ID')}.`);
      return { result: { v: 1, kind: 'access', ids, rows, exit: EXIT.done, error: null }, lines: [] };
    } catch (error) {
      await file?.close();
      if (path !== undefined) await rm(path, { force: true });
      throw error;
    } finally {
      await close();
    }
  },
});

/** Throws a UserError that names the file if its disk refuses the write. */
async function onDisk(path: string | undefined, writing: Promise<void> | undefined): Promise<void> {
  try {
    await writing;
  } catch (error) {
    throw path === undefined ? error : diskError(error, { what: path, path });
  }
}

/** Creates the output file (0600); refuses to replace an existing one. */
async function newFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', OWNER_FILE_MODE);
  } catch (error) {
    const why = codeOf(error) === 'EEXIST' ? 'exists: give a new name' : `cannot be made: ${messageOf(error)}`;
    throw configError(`The file ${path} ${why}.`, { cause: error, where: { file: path } });
  }
}
