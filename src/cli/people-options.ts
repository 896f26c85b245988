// What `forget` and `person` share: their options, the list that these name, and the search for its people.

import { credentialsError, hasCredentials } from '../base/address.ts';
import { configError } from '../base/errors.ts';
import { HashKey } from '../base/hash-key.ts';
import { IdList } from '../erasure/list/id-list.ts';
import { readList } from '../erasure/list/list-file.ts';
import { namedPlace, type SearchSettings } from '../erasure/listed-people.ts';
import { openExportClient } from '../service/export/client.ts';
import { STATEFUL_TARGETS } from '../targets/targets.ts';
import { type OptionValues, pathOption, textOption, underHeading } from './command.ts';
import { type CommandConfig, requireExportKeys, requireKeys } from './configuration.ts';
import type { Context } from './context.ts';
import { checkedTarget, placeOf } from './places.ts';

export const WHOM_HEADING = 'Whom';
export const WHERE_HEADING = 'Where, and how people are found';

export const PEOPLE_OPTIONS = {
  ...underHeading(WHOM_HEADING, {
    id: textOption('An external ID'),
    file: pathOption('CSV or JSON Lines with --column, or one ID a line; - for standard input'),
    column: textOption('Name of the column with the external IDs'),
  }),
  ...underHeading(WHERE_HEADING, {
    in: {
      description: 'A target and its place, as often as there are places; default: erasure.places',
      wordCount: 2,
      parse(words, name) {
        if (words.some(hasCredentials)) throw credentialsError(name);
        return words.flatMap((target, i) => (i % 2 === 0 ? { target, place: words[i + 1] } : []));
      },
    },
    byColumn: textOption('Column of the places that holds the external ID; default: erasure.by_column'),
    mapping: pathOption(
      'In place of the profiles of the service: a file with the columns external_id and df_unified_id',
    ),
  }),
};

type PeopleValues = OptionValues<typeof PEOPLE_OPTIONS>;

/** A longer wait for the quota ends the command, which can be repeated later. */
const MAX_QUOTA_WAIT_MS = 60_000;

/** Gives `work` the search for people. With `suppressed` it takes the people of the suppression list alone. */
export async function withPeopleSearch<T>(
  values: Pick<PeopleValues, 'byColumn' | 'mapping' | 'in'> & { readonly suppressed?: boolean },
  config: CommandConfig,
  context: Context,
  work: (search: SearchSettings) => Promise<T>,
): Promise<T> {
  const { byColumn, mapping, suppressed } = values;
  const { hashKey } = requireKeys(config, 'hash_key');
  const places = placesToSearch(values.in, config, context);
  const asksProfiles = !suppressed && config.profiles && mapping === undefined && config.exportToken !== undefined;
  const profileService = asksProfiles
    ? openExportClient(requireExportKeys(config), context, { maxWaitMs: MAX_QUOTA_WAIT_MS })
    : undefined;
  try {
    return await work({
      places,
      serviceId: config.serviceId,
      profileService,
      byColumn: suppressed ? undefined : (byColumn ?? config.byColumn),
      mapping,
      hashKey: hashKey && new HashKey(hashKey),
      runtime: { ...context, spoolDir: config.spoolDir },
    });
  } finally {
    await profileService?.close();
  }
}

/** The places of `--in`, else those of the configuration. */
function placesToSearch(placesOfOption: PeopleValues['in'], config: CommandConfig, context: Context) {
  return (placesOfOption.length > 0 ? placesOfOption : config.places).map(({ target: targetName, place }) => {
    const target = checkedTarget(targetName, place, STATEFUL_TARGETS, '--in');
    return namedPlace(placeOf(target, place, config, context));
  });
}

/** Reads a list from a file, or makes one of a single ID. `requestedAt`: the column with the times of the requests. */
export async function readIdList(
  { id, file, column }: Pick<PeopleValues, 'id' | 'file' | 'column'>,
  signal: AbortSignal,
  requestedAt?: string,
): Promise<IdList> {
  const list = new IdList();
  if ((id === undefined) === (file === undefined)) throw configError('It takes exactly one of --id and --file.');
  if (file === undefined) {
    if (column !== undefined) throw configError('--column needs a list, and a single ID is given.');
    list.add({ rowNumber: 1, id: id ?? '' });
    return list;
  }
  for await (const row of readList(file === '-' ? process.stdin : file, column, requestedAt)) {
    signal.throwIfAborted();
    list.add(row);
  }
  return list;
}
