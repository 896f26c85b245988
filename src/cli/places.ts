import { configError } from '../base/errors.ts';
import type { ColumnSettings } from '../table/column-type.ts';
import type { LoadOptions, Place, StatefulTarget, Target } from '../targets/contract.ts';
import { TARGETS } from '../targets/targets.ts';
import { type PlaceWords, unknownNameError } from './command.ts';
import { type CommandConfig, pathInFolder, readConfiguration } from './configuration.ts';
import type { Context } from './context.ts';

/** How a place of one of these targets is given, such as `duckdb FILE or parquet DIR`. */
export const placeUsage = (targets: readonly Target[]): string =>
  targets.flatMap(({ name, placeForms }) => placeForms.map((form) => `${name} ${form}`)).join(' or ');

/** What most commands begin with: the configuration, and the place that its arguments or the configuration name. */
export function readPlaceAndConfig<T extends Target>(
  values: PlaceWords & { readonly config: string | object | undefined },
  targets: readonly T[],
  context: Context,
): { readonly config: CommandConfig; readonly place: Place<T> } {
  const { commandName } = context;
  const config = readConfiguration(values.config, context);
  const { target: targetName, place: address } =
    values.target === undefined && values.place === undefined ? config : values;
  if (targetName === undefined || address === undefined) {
    const forms = `${commandName} ${placeUsage(targets)}`;
    throw configError(`TARGET PLACE is missing: write ${forms}, or set target and place in ${config.fileLabel}.`);
  }
  const target = checkedTarget(targetName, address, targets, commandName);
  return { config, place: placeOf(target, address, config, context) };
}

/**
 * The target that TARGET PLACE names, behind `wordBefore`: a command or `--in`. Throws a configuration failure if another
 * target has loaded the place. The name may be an id or a secret, so that it is only shown if a target is near.
 */
export function checkedTarget<T extends Target>(
  targetName: string,
  address: string,
  targets: readonly T[],
  wordBefore: string,
): T {
  const names = targets.map(({ name }) => name);
  const target = targets.find(({ name }) => name === targetName);
  if (target === undefined && TARGETS.some(({ name }) => name === targetName))
    throw configError(`${targetName} is not possible here: write ${placeUsage(targets)}.`);
  if (target === undefined) throw unknownNameError('target', targetName, names);
  const path = pathInFolder(address, '.');
  const loadedBy = TARGETS.find(({ hasPlaceAt }) => hasPlaceAt(path))?.name;
  if (loadedBy === undefined || loadedBy === targetName) return target;
  const rightWords = names.includes(loadedBy) ? `${loadedBy} ${address}` : placeUsage(targets);
  throw configError(`${address} is a place of ${loadedBy}: write ${wordBefore} ${rightWords}.`);
}

export function placeOf<T extends Target>(
  target: T,
  address: string,
  { lockWaitMs, memoryLimit, spoolDir }: CommandConfig,
  { env, clock, logger, signal }: Context,
): Place<T> {
  return { target, address, lockWaitMs, memoryLimit, spoolDir, env, clock, logger, signal };
}

/** What a place holds; undefined before its first load. */
export const storedState = async (place: Place<StatefulTarget>) => (await place.target.maintenance(place)).readState();

/** How a run opens its place. */
export function loadOptions(
  place: Place,
  config: CommandConfig,
  { terminal }: Context,
  pinnedTypes?: ColumnSettings['pinnedTypes'],
): LoadOptions {
  const { retentionMs, timezone = null, columnTypes, schemaMode, userProfiles: loadsProfiles } = config;
  const columnSettings = { timezone, columnTypes, schemaMode, pinnedTypes };
  return { ...place, columnSettings, loadsProfiles, retentionMs, stdout: terminal.stdout ?? process.stdout };
}
