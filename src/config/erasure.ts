import schema from '../../schemas/erasure-config.json' with { type: 'json' };
import valid from '../../schemas/erasure-config.validator';
import { isObject } from '../base/json.ts';
import { cleanBaseUrl } from './base-url.ts';
import { type ParsedConfig, parseConfig, serviceProblems, type ValuesOf } from './parse.ts';

const configOf = ({ places, ...values }: ValuesOf<typeof schema>) => ({
  ...values,
  baseUrl: cleanBaseUrl(values.baseUrl),
  places: placesIn(places),
});

/** The schema has checked each entry. */
const placesIn = (places: unknown): readonly { readonly target: string; readonly place: string }[] =>
  (Array.isArray(places) ? places : []).flatMap((one: unknown) =>
    isObject(one) ? [{ target: String(one.target), place: String(one.place) }] : [],
  );

/** The object `erasure` of dfinery.json with the service: frozen, every default filled in. */
export type ErasureConfig = Readonly<ReturnType<typeof configOf>>;

/** `names`: the environment variables that gave keys. */
export const parseErasureConfig = (value: unknown, names?: ReadonlyMap<string, string>): ParsedConfig<ErasureConfig> =>
  parseConfig(
    { schema, valid, configOf, problems: (filled) => serviceProblems(filled, 'import_token') },
    value,
    () => undefined,
    names,
  );
