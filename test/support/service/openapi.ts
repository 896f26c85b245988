import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { isDay } from '../../../src/base/days.ts';
import { isObject } from '../../../src/base/json.ts';
import type { RawRequest } from './faulty-server.ts';

// Holds requests and answers to spec/openapi.yaml. Both functions give one sentence a problem; none means valid.

export type OperationId = 'exportEvents' | 'exportProfiles' | 'deleteProfile';
/** By names in lower case. */
type Headers = Readonly<Record<string, string>>;

interface Described {
  readonly schema: object;
}
interface Parameter extends Described {
  readonly name: string;
  readonly in: 'query' | 'header';
  readonly required?: boolean;
}
interface Content extends Described {
  readonly 'x-csv-required-columns'?: readonly string[];
  readonly 'x-csv-one-of-columns'?: readonly string[];
}
interface Answer {
  readonly headers?: Readonly<Record<string, Described>>;
  readonly content?: Readonly<Record<string, Content>>;
}
interface Operation {
  readonly operationId: OperationId;
  readonly parameters: readonly Parameter[];
  readonly requestBody: { readonly content: Readonly<Record<'application/json', Content>> };
  /** By status; `default` for all others. */
  readonly responses: Readonly<Record<string, Answer>>;
}

const document: unknown = parse(readFileSync(new URL('../../../spec/openapi.yaml', import.meta.url), 'utf8'));
const { paths } = withoutRefs(document) as { paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ ...operation, line: `${method.toUpperCase()} ${path}` })),
);
const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { date: isDay } });

/** A part of the document, with what its references name in their place. */
function withoutRefs(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(withoutRefs);
  if (!isObject(part)) return part;
  if (typeof part.$ref !== 'string')
    return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, withoutRefs(value)]));
  const names = part.$ref.split('/').slice(1);
  return withoutRefs(names.reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), document));
}

function operationOf(id: OperationId) {
  const operation = operations.find(({ operationId }) => operationId === id);
  if (operation === undefined) throw new Error(`no operation ${id} in openapi.yaml`);
  return operation;
}

export function requestProblems(id: OperationId, { line, headers, body }: RawRequest): string[] {
  const operation = operationOf(id);
  const [method, target = ''] = line.split(' ');
  const { pathname, searchParams } = new URL(target, 'http://loopback');
  const problems = `${method} ${pathname}` === operation.line ? [] : [`not ${operation.line}`];
  for (const { name, in: where, required, schema } of operation.parameters) {
    const text = where === 'query' ? searchParams.get(name) : headers[name.toLowerCase()];
    if (text !== undefined && text !== null) problems.push(...schemaProblems(schema, text, `${where} ${name}`));
    else if (required === true) problems.push(`${where} ${name} is missing`);
  }
  const known = operation.parameters.filter((parameter) => parameter.in === 'query').map(({ name }) => name);
  for (const name of searchParams.keys()) if (!known.includes(name)) problems.push(`query ${name} is unknown`);
  const { schema } = operation.requestBody.content['application/json'];
  return [...problems, ...schemaProblems(schema, JSON.parse(body), 'body')];
}

/** `body` is parsed JSON for a JSON answer, else the text. */
export function responseProblems(id: OperationId, status: number, headers: Headers, body: unknown): string[] {
  const { responses } = operationOf(id);
  const { headers: described = {}, content } = responses[status] ?? responses.default;
  const problems = Object.entries(described).flatMap(([name, { schema }]) => {
    const text = headers[name.toLowerCase()];
    return text === undefined ? [] : schemaProblems(schema, text, `header ${name}`);
  });
  if (content === undefined) return problems;
  const type = (headers['content-type'] ?? '').split(';')[0].trim().toLowerCase();
  if (!Object.hasOwn(content, type)) return [...problems, `content type "${type}" is not described`];
  return [...problems, ...schemaProblems(content[type].schema, body, 'body'), ...columnProblems(content[type], body)];
}

function columnProblems(content: Content, body: unknown): string[] {
  const { 'x-csv-required-columns': required = [], 'x-csv-one-of-columns': alternatives } = content;
  const names = String(body).split(/\r?\n/, 1)[0].split(',');
  const missing = required.filter((name) => !names.includes(name)).map((name) => `column ${name} is missing`);
  return alternatives === undefined || alternatives.filter((name) => names.includes(name)).length === 1
    ? missing
    : [...missing, `not exactly one of the columns ${alternatives.join(', ')}`];
}

function schemaProblems(schema: object, value: unknown, what: string): string[] {
  const validate = ajv.compile(schema);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${what}${instancePath} ${message}`);
}
