import schema from '../../schemas/erasure-config.json' with { type: 'json' };
import validate from '../../schemas/erasure-config.validator';
import { cleanBaseUrl } from './base-url.ts';
import { type ParsedConfig, parseConfig, serviceProblems, type ValuesOf } from './parse.ts';

/** The keys that only some commands need. */
type ServiceKey = 'baseUrl' | 'serviceId' | 'importToken';
type Values = ValuesOf<typeof schema>;

const configOf = ({ places, baseUrl, serviceId, ...values }: Omit<Values, ServiceKey> & Partial<Values>) => ({
  ...values,
  /** The service whose profiles are deleted, if both keys are set. */
  service: baseUrl === undefined || serviceId === undefined ? undefined : { baseUrl: cleanBaseUrl(baseUrl), serviceId },
  places: places ?? [],
});

/** The object `erasure` of dfinery.json with the service: frozen, every default values in. */
export type ErasureConfig = Readonly<ReturnType<typeof configOf>>;

/**
 * Service and token may be missing: a proof and `person` do without. `names`: the environment variables that gave keys.
 */
export const parseErasureConfig = (value: unknown, names?: ReadonlyMap<string, string>): ParsedConfig<ErasureConfig> =>
  parseConfig(
    { schema, validate, configOf, required: [], problems: (values) => serviceProblems(values, 'import_token') },
    value,
    { names },
  );
