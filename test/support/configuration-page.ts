import destination from '../../schemas/destination-config.json' with { type: 'json' };
import source from '../../schemas/source-config.json' with { type: 'json' };
import { type ConfigSchema, FORMS, type Property, variablesOf } from '../../src/config/environment.ts';

function formOf({ type, enum: choices, airbyte_secret }: Property): string {
  if (airbyte_secret) return 'a secret';
  return choices?.map((choice) => `\`${String(choice)}\``).join(', ') ?? FORMS[type ?? 'string'] ?? '';
}

function table(schema: ConfigSchema): string[] {
  const rows = variablesOf(schema).map(({ key, name, property }) => {
    const standard = property.default === undefined ? '' : `\`${JSON.stringify(property.default)}\``;
    const cells = [
      `\`${key}\``,
      `\`${name}\`${property.airbyte_secret ? ', also `…_FILE`' : ''}`,
      formOf(property),
      schema.required.includes(key) ? 'required' : standard,
      property.description ?? '',
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return ['| key | variable | value | default | meaning |', '|---|---|---|---|---|', ...rows];
}

/** docs/configuration.md as it has to be: its tables come from the schemas. */
export const configurationPage = (): string =>
  [
    '# Configuration',
    '',
    'The command line takes its configuration from a JSON file (`--config`, default `dfinery.json`, for `forget`',
    '`dfinery-destination.json`), from environment variables, or from both: a variable wins over the file, and without a',
    'file the variables are enough. `dfinery-elt init` writes the file.',
    '',
    '- Each key is the variable `DFINERY_` + the key in capitals. An empty variable counts as not set.',
    '- Lists: names with commas between them (`one,two`), or a JSON array where a name has a comma. Objects: JSON.',
    '- Numbers and `true`/`false` are taken literally; anything else is refused with exit 2, and the sentence names the variable.',
    '- A secret may also stand in a file that the variable + `_FILE` names; both at once are refused.',
    '- A name that begins with `DFINERY_` and means nothing is refused with the nearest one that does. What Kubernetes sets for a',
    '  service called `dfinery…`, and what the Airflow example reads (`DFINERY_CLI`, `DFINERY_CONFIG`, `DFINERY_TARGET`,',
    '  `DFINERY_IMAGE`, `DFINERY_DATA`, `DFINERY_DOCKER_URL`, `DFINERY_DOCKER_NETWORK`), is left alone.',
    '- `dfinery-elt plan --json` says for each key its value and whether it came from the file, the environment or the default;',
    '  secrets are masked. `dfinery-elt sync --help` and `dfinery-elt forget --help` list the variables.',
    '',
    'The Airbyte images get their configuration from the platform. From the environment they take only the tokens that it',
    'lacks: `DFINERY_EXPORT_TOKEN`, `DFINERY_SUPPRESSION_KEY`, `DFINERY_IMPORT_TOKEN`, `DFINERY_LEDGER_KEY`, each also as `_FILE`.',
    '',
    '## Source: `sync`, `plan`, `check`, `discover`',
    '',
    ...table(source),
    '',
    '## Destination: `forget`',
    '',
    ...table(destination),
    '',
    'This page is made from `schemas/source-config.json` and `schemas/destination-config.json` by',
    '`npx vitest run test/unit/config/environment.test.ts --update`.',
    '',
  ].join('\n');
