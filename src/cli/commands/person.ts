import { type FileHandle, open, rm } from 'node:fs/promises';
import { codeOf, configError, EXIT, messageOf } from '../../base/errors.ts';
import { plainCount } from '../../base/quantities.ts';
import { refuseUnknownNames } from '../../config/environment.ts';
import { accessPeople } from '../../deletion/access.ts';
import { type Command, flag, maintenanceOptions, type Options, placeOptions, text } from '../command.ts';
import { findDestinationConfig } from '../configuration.ts';
import type { Context } from '../context.ts';
import { hashKeyFrom, idsOf, placesOf, printFailure } from './forget.ts';

export const person: Command = {
  refusesUnknownNames: true,
  options: (yargs) =>
    maintenanceOptions(yargs)
      .option('id', { type: 'string', describe: 'An external ID' })
      .option('file', { type: 'string', describe: 'CSV, JSON Lines, or one ID a line; - for standard input' })
      .option('column', { type: 'string', describe: 'Name of the column with the external IDs' })
      .option('in', { type: 'string', nargs: 2, describe: 'A target and its place; may be given several times' })
      .option('by-column', { type: 'string', describe: 'Column there that holds the external ID' })
      .option('mapping', { type: 'string', describe: 'File with the columns external_id and df_unified_id' })
      .option('output', { alias: 'o', type: 'string', describe: 'A new file (mode 0600); default: stdout' })
      .option('config', {
        type: 'string',
        describe: 'Destination configuration (JSON), for its ledger; default dfinery-destination.json',
      }),
  async run(options, context) {
    try {
      refuseUnknownNames(context.env);
      const places = placesOf('in', options.in);
      if (places.length === 0) throw configError('person needs --in TARGET PLACE: where to look.');
      const [column, mapping] = [text(options, 'byColumn'), text(options, 'mapping')];
      if ((column === undefined) === (mapping === undefined)) {
        throw configError('person needs exactly one of --by-column and --mapping, to find the people there.');
      }
      const config = findDestinationConfig(text(options, 'config'), context);
      const output = await openOutput(options, context);
      try {
        const { ids, rows } = await accessPeople({
          ids: idsOf(options, { header: config?.externalIdField }, context, '--id and --file'),
          places,
          column,
          mapping,
          hashKey: hashKeyFrom(context),
          options: placeOptions(options, context),
          config,
          write: (line) => output.write(line),
        });
        if (flag(options, 'json'))
          context.terminal.result(JSON.stringify({ v: 1, kind: 'access', ids, rows, exit: 0, error: null }));
        else context.logger.info('person.done', `${plainCount(rows, 'row')} about ${plainCount(ids, 'id')}.`);
        await output.close();
        return EXIT.done;
      } catch (error) {
        await output.discard();
        throw error;
      }
    } catch (error) {
      printFailure(error, options, context);
      throw error;
    }
  },
};

interface Output {
  write(line: string): Promise<void>;
  close(): Promise<void>;
  /** Closes it and leaves no file. */
  discard(): Promise<void>;
}

async function openOutput(options: Options, { terminal }: Context): Promise<Output> {
  const path = text(options, 'output');
  if (path === undefined) {
    return {
      async write(line) {
        terminal.result(line);
      },
      async close() {},
      async discard() {},
    };
  }
  const file = await newFile(path);
  return {
    async write(line) {
      await file.writeFile(`${line}\n`);
    },
    async close() {
      await file.datasync();
      await file.close();
    },
    async discard() {
      await file.close();
      await rm(path, { force: true });
    },
  };
}

/** What is known about a person is for the owner's eyes alone, and replaces nothing. */
async function newFile(path: string): Promise<FileHandle> {
  try {
    return await open(path, 'wx', 0o600);
  } catch (error) {
    const why = codeOf(error) === 'EEXIST' ? 'exists: give a new name' : `cannot be made: ${messageOf(error)}`;
    throw configError(`The file ${path} ${why}.`, { cause: error, where: { file: path } });
  }
}
