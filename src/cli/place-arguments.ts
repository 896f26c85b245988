import { statSync } from 'node:fs';
import { configError } from '../base/errors.ts';
import type { Target } from '../targets/contract.ts';
import { TARGETS, targetAt } from '../targets/targets.ts';
import { argument, type OptionValues, text, unknownName } from './command.ts';
import { CliConfiguration } from './configuration.ts';
import type { Context } from './context.ts';

/** The arguments TARGET PLACE. Both may be left out: then the configuration names them. */
export const placeArguments = (targets: readonly Target[]) => ({
  target: argument({ ...text('A target'), choices: targets.map(({ name }) => name) }),
  place: argument(text('A place of it')),
});

type PlaceWords = Partial<OptionValues<ReturnType<typeof placeArguments>>>;

/** A place, as a user names it. */
export interface NamedPlace<T extends Target = Target> {
  readonly target: T;
  readonly place: string;
}

/** How a place of one of these targets is given, such as `duckdb FILE or parquet DIR`. */
export const placeWords = (targets: readonly Target[]): string =>
  targets.flatMap(({ name, placeForms }) => placeForms.map((form) => `${name} ${form}`)).join(' or ');

/** What most commands begin with: the configuration, and the place that the words or the configuration name. */
export function configuredPlace<T extends Target>(
  command: string,
  words: PlaceWords & { readonly config: string | undefined },
  targets: readonly T[],
  context: Context,
) {
  const configuration = new CliConfiguration(words.config, context);
  return { configuration, ...placeOf(command, words, targets, configuration) };
}

/** The target and the place of a command. Throws a configuration failure where nothing names them. */
export function placeOf<T extends Target>(
  command: string,
  words: PlaceWords,
  targets: readonly T[],
  configuration: CliConfiguration,
): NamedPlace<T> {
  const named = optionalPlaceOf(command, words, targets, configuration);
  if (named !== undefined) return named;
  throw configError(
    `TARGET PLACE is missing: write ${command} ${placeWords(targets)}, or set target and place in ${configuration.file}.`,
  );
}

/** The same for a command that may do without; undefined where nothing names them. */
export function optionalPlaceOf<T extends Target>(
  command: string,
  words: PlaceWords,
  targets: readonly T[],
  configuration: CliConfiguration,
): NamedPlace<T> | undefined {
  const { target: word, place } = words.target === undefined ? configuration.local() : words;
  if (word === undefined) return undefined;
  if (place === undefined) throw incompletePlace(command, word, targets);
  const target = targetNamed(word, targets, command);
  checkTarget(target, place, command);
  return { target, place };
}

/** The failure of a single word, which is the target, or the place alone. */
function incompletePlace(command: string, word: string, targets: readonly Target[]) {
  const named = TARGETS.find(({ name }) => name === word);
  if (named !== undefined) return configError(`PLACE is missing: write ${command} ${placeWords([named])}.`);
  const kind = targetAt(word) ?? kindOf(word);
  if (kind === undefined) return unknownTarget(word, targets);
  return configError(`TARGET is missing: write ${command} ${kind} ${word}.`);
}

/** The target that a word was probably meant for, which names no place yet; undefined for what may be no place. */
function kindOf(word: string): string | undefined {
  if (/\.(duckdb|db)$/.test(word)) return 'duckdb';
  if (word.endsWith('.arrow') || word === '-') return 'arrow';
  if (word.startsWith('s3://')) return 'delta';
  return word.endsWith('/') || statSync(word, { throwIfNoEntry: false })?.isDirectory() ? 'parquet' : undefined;
}

/** The target of a `TARGET PLACE`. The word may be an id or a secret, so that it is only shown if a target is near. */
export function targetNamed<T extends Target>(word: string, targets: readonly T[], command: string): T {
  const target = targets.find(({ name }) => name === word);
  if (target !== undefined) return target;
  if (TARGETS.some(({ name }) => name === word))
    throw configError(`${command} takes ${placeWords(targets)}, not ${word}.`);
  throw unknownTarget(word, targets);
}

const unknownTarget = (word: string, targets: readonly Target[]) =>
  unknownName(
    'target',
    word,
    targets.map(({ name }) => name),
  );

/** Throws a configuration failure for a place that another target has loaded. */
export function checkTarget({ name }: Target, place: string, command: string): void {
  const kind = targetAt(place);
  if (kind !== undefined && kind !== name)
    throw configError(`${place} is a place of ${kind}: write ${command} ${kind} ${place}.`);
}
