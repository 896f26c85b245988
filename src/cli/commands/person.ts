import { type FileHandle, open, rm } from 'node:fs/promises';
import { codeOf, configError, EXIT, messageOf } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { accessPeople } from '../../erasure/access.ts';
import { OWNER_FILE } from '../../fs/atomic-file.ts';
import { diskError } from '../../fs/disk-failure.ts';
import { defineCommand, places, text } from '../command.ts';
import { findDestinationConfig, PLACE_OPTIONS, placeOptions } from '../destination.ts';
import { hashKeyFrom, idsOf, LIST_OPTIONS, MAPPING_OPTION, storedPlaces } from '../people.ts';

export const command = defineCommand({
  options: {
    ...LIST_OPTIONS,
    in: places('A target and its place; may be given several times'),
    byColumn: text('Column of each place that holds the external ID'),
    mapping: MAPPING_OPTION,
    output: { ...text('A new file (mode 0600); default: stdout'), short: 'o' },
    ...PLACE_OPTIONS,
  },
  examples: [
    'person --id A-1001 --in duckdb f.duckdb --by-column member',
    'person --file ids.txt --in delta d --mapping map.csv -o x.jsonl',
  ],
  page: 'privacy.md',
  async run(values, context) {
    const { id, file: list, byColumn: column, mapping, output: path } = values;
    const places = storedPlaces('in', values.in);
    if (places.length === 0) throw configError('person needs --in TARGET PLACE: where to look.');
    if ((column === undefined) === (mapping === undefined)) {
      throw configError('person needs exactly one of --by-column and --mapping, to find the people there.');
    }
    if ((id === undefined) === (list === undefined)) throw configError('It takes exactly one of --id and --file.');
    if (list === undefined && values.column !== undefined) throw configError('--column needs --file.');
    const config = findDestinationConfig(values.config, context);
    const file = path === undefined ? undefined : await newFile(path);
    try {
      const { ids, rows } = await accessPeople({
        ids: idsOf(values, { header: config?.externalIdField }, context),
        places,
        column,
        mapping,
        hashKey: hashKeyFrom(context),
        options: placeOptions(values, context),
        config,
        async write(line) {
          if (file === undefined) context.terminal.result(line);
          else await onDisk(path, file.writeFile(`${line}\n`));
        },
      });
      await onDisk(path, file?.datasync());
      if (values.json)
        context.terminal.result(JSON.stringify({ v: 1, kind: 'access', ids, rows, exit: 0, error: null }));
      else context.logger.info('person.done', `${plainCount(rows, 'row')} about ${plainCount(ids, 'id')}.`);
      await file?.close();
      return EXIT.done;
    } catch (error) {
      await file?.close();
      if (path !== undefined) await rm(path, { force: true });
      throw error;
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
    return await open(path, 'wx', OWNER_FILE);
  } catch (error) {
    const why = codeOf(error) === 'EEXIST' ? 'exists: give a new name' : `cannot be made: ${messageOf(error)}`;
    throw configError(`The file ${path} ${why}.`, { cause: error, where: { file: path } });
  }
}
