import { configError, type UserError } from '../base/errors.ts';
import type { Target } from '../targets/contract.ts';
import { TARGETS, targetAt } from '../targets/targets.ts';
import { argument, type OptionValues, text, unknownName } from './command.ts';
import { CONFIG_FILE, type CommandConfig, readConfiguration } from './configuration.ts';
import type { Context } from './context.ts';

/** The arguments TARGET PLACE. Both may be left out: then the configuration names them. */
export const placeArguments = (targets: readonly Target[]) => ({
  target: argument({ ...text('A target'), choices: targets.map(({ name }) => name) }),
  place: argument(text('A place of it')),
});

export type PlaceValues = Partial<OptionValues<ReturnType<typeof placeArguments>>>;

/** A place, as a user names it. */
export interface NamedPlace<T extends Target = Target> {
  readonly target: T;
  readonly place: string;
}

/** True where the data of a run go to stdout, so that nothing else may. */
export const isStdout = (namedPlace: NamedPlace | undefined): boolean =>
  namedPlace?.target.isStdout?.(namedPlace.place) === true;

/** How a place of one of these targets is given, such as `duckdb FILE or parquet DIR`. */
export const placeUsage = (targets: readonly Target[]): string =>
  targets.flatMap(({ name, placeForms }) => placeForms.map((form) => `${name} ${form}`)).join(' or ');

/** What most commands begin with: the configuration, and the place that its arguments or the configuration name. */
export function configuredPlace<T extends Target>(
  command: string,
  values: PlaceValues & { readonly config: string | undefined },
  targets: readonly T[],
  context: Context,
) {
  const config = readConfiguration(values.config, context);
  return { config, ...placeOf(command, values, targets, config) };
}

/** The target and the place of a command. Throws a configuration failure where nothing names both. */
export function placeOf<T extends Target>(
  command: string,
  values: PlaceValues,
  targets: readonly T[],
  config: CommandConfig,
): NamedPlace<T> {
  const namedPlace = optionalPlaceOf(command, values, targets, config);
  if (namedPlace === undefined) throw missingPlace(command, targets, config);
  return namedPlace;
}

/** The same for a command that may do without; undefined where nothing names them. */
export function optionalPlaceOf<T extends Target>(
  command: string,
  values: PlaceValues,
  targets: readonly T[],
  config: CommandConfig | undefined,
): NamedPlace<T> | undefined {
  const { target: word, place } = values.target === undefined ? (config ?? {}) : values;
  if (word === undefined) return undefined;
  // The word may be the place alone, and no known one.
  if (place === undefined) throw missingPlace(command, targets, config);
  return { target: targetOf(word, place, targets, command), place };
}

function missingPlace(command: string, targets: readonly Target[], config: CommandConfig | undefined): UserError {
  const { shownFile = CONFIG_FILE } = config ?? {};
  const forms = placeUsage(targets);
  return configError(`TARGET PLACE is missing: write ${command} ${forms}, or set target and place in ${shownFile}.`);
}

/**
 * The target of a `TARGET PLACE`, which follows `usage`: a command or `--in`. Throws a configuration failure if another
 * target has loaded the place. The word may be an id or a secret, so that it is only shown if a target is near.
 */
export function targetOf<T extends Target>(word: string, place: string, targets: readonly T[], usage: string): T {
  const target = targets.find(({ name }) => name === word);
  if (target === undefined && TARGETS.some(({ name }) => name === word))
    throw configError(`${usage} takes ${placeUsage(targets)}, not ${word}.`);
  const names = targets.map(({ name }) => name);
  if (target === undefined) throw unknownName('target', word, names);
  const kind = targetAt(place);
  if (kind === undefined || kind === word) return target;
  throw configError(`${place} is a place of ${kind}: write ${usage} ${kind} ${place}.`);
}
