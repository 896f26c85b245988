// The code by which a value is checked against one of our schemas: ajv makes it when the program is bundled, since that
// takes longer than the start of a command.
import { readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { _, Ajv } from 'ajv';
import standaloneCode from 'ajv/dist/standalone/index.js';

/** What the code calls: the formats of our schemas. */
const FORMATS = `
import { addressProblem } from '../src/base/address.ts';
import { isDay } from '../src/base/days.ts';
const formats = { date: isDay, uri: (text) => addressProblem(text) === undefined };
`;

/**
 * The module `schemas/NAME.validator`, a `Validator` of NAME.json, or `schemas/NAME.PART.validator`, one of its
 * definition PART.
 */
export function validatorModule(path) {
  const [name, part] = basename(path, '.validator').split('.');
  const schema = JSON.parse(readFileSync(join(dirname(path), `${name}.json`), 'utf8'));
  const ajv = new Ajv({
    // Every problem at once, each with the value and the part of the schema, of which messages are made.
    ...{ allErrors: true, verbose: true, useDefaults: true },
    // Annotations of Airbyte are no keywords. A test checks the schemas themselves.
    ...{ strict: false, meta: false, validateSchema: false },
    // The length of a text in UTF-16 units: the code then imports no part of ajv.
    ...{ unicode: false, logger: false },
    code: { source: true, esm: true, formats: _`formats` },
  });
  for (const format of ['date', 'uri']) ajv.addFormat(format, () => true);
  // Every text is a path.
  ajv.addFormat('path', true);
  const validate = ajv.compile(
    part === undefined ? schema : { ...schema.definitions[part], definitions: schema.definitions },
  );
  return FORMATS + standaloneCode(ajv, validate);
}

/** For esbuild. */
export const validators = {
  name: 'validators',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\.validator$/ }, ({ path, resolveDir }) => ({
      path: `schemas/${basename(path)}`,
      namespace: 'validator',
      pluginData: join(resolveDir, path),
    }));
    onLoad({ filter: /.*/, namespace: 'validator' }, ({ pluginData: path }) => ({
      contents: validatorModule(path),
      resolveDir: dirname(path),
    }));
  },
};
