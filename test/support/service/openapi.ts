import { readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { parse } from 'yaml';
import { isDay } from '../../../src/base/days.ts';

/** Holds requests and answers to spec/openapi.yaml. Both functions give one sentence a problem; none means valid. */
export type OperationId = 'exportEvents' | 'exportProfiles' | 'deleteProfile';
type Json = Record<string, unknown>;

const ROOT = 'openapi';
const document: Json = parse(readFileSync(new URL('../../../spec/openapi.yaml', import.meta.url), 'utf8'));
const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { date: isDay } });
ajv.addSchema(document, ROOT);

const object = (value: unknown): Json => (typeof value === 'object' && value !== null ? (value as Json) : {});

interface Operation {
  readonly pointer: string;
  readonly method: string;
  readonly path: string;
  readonly value: Json;
}

const operations: ReadonlyMap<string, Operation> = new Map(
  Object.entries(object(document.paths)).flatMap(([path, methods]) =>
    Object.entries(object(methods)).map(([method, value]): [string, Operation] => [
      String(object(value).operationId),
      { pointer: `/paths/${escaped(path)}/${method}`, method: method.toUpperCase(), path, value: object(value) },
    ]),
  ),
);

function operation(id: OperationId): Operation {
  const described = operations.get(id);
  if (!described) throw new Error(`no operation ${id} in openapi.yaml`);
  return described;
}

export interface RequestParts {
  readonly method?: string;
  readonly path?: string;
  readonly query: Readonly<Record<string, string>>;
  /** Names in any case. */
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON. */
  readonly body: unknown;
}

export function validateRequest(id: OperationId, request: RequestParts): string[] {
  const op = operation(id);
  const problems: string[] = [];
  if (request.method !== undefined && request.method !== op.method) problems.push(`method ${request.method}`);
  if (request.path !== undefined && request.path !== op.path) problems.push(`path ${request.path}`);
  const parameters = (op.value.parameters as Json[]).map((parameter, i) =>
    resolve(parameter, `${op.pointer}/parameters/${i}`),
  );
  for (const { value, pointer } of parameters) {
    const name = String(value.name);
    const text = value.in === 'query' ? request.query[name] : header(request.headers, name);
    if (text === undefined && value.required === true) problems.push(`${value.in} ${name} is missing`);
    if (text !== undefined) problems.push(...check(`${pointer}/schema`, text, `${value.in} ${name}`));
  }
  const queryNames = parameters.filter(({ value }) => value.in === 'query').map(({ value }) => value.name);
  for (const name of Object.keys(request.query))
    if (!queryNames.includes(name)) problems.push(`query ${name} is unknown`);
  const schema = `${op.pointer}/requestBody/content/${escaped('application/json')}/schema`;
  return [...problems, ...check(schema, request.body, 'body')];
}

/** `body` is parsed JSON for a JSON answer, else the text. Headers in any case. */
export function validateResponse(
  id: OperationId,
  status: number,
  headers: Readonly<Record<string, string>>,
  body: unknown,
): string[] {
  const op = operation(id);
  const responses = object(op.value.responses);
  const key = Object.hasOwn(responses, String(status)) ? String(status) : 'default';
  const response = object(responses[key]);
  const pointer = `${op.pointer}/responses/${key}`;
  return [...headerProblems(response, pointer, headers), ...bodyProblems(response, pointer, headers, body)];
}

function headerProblems(response: Json, pointer: string, headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(object(response.headers)).flatMap(([name, description]) => {
    const text = header(headers, name);
    const at = resolve(object(description), `${pointer}/headers/${escaped(name)}`).pointer;
    return text === undefined ? [] : check(`${at}/schema`, text, `header ${name}`);
  });
}

function bodyProblems(response: Json, pointer: string, headers: Readonly<Record<string, string>>, body: unknown) {
  const content = response.content;
  if (content === undefined) return [];
  const type = (header(headers, 'content-type') ?? '').split(';')[0].trim().toLowerCase();
  if (!Object.hasOwn(object(content), type)) return [`content type "${type}" is not described`];
  const media = object(object(content)[type]);
  return [...check(`${pointer}/content/${escaped(type)}/schema`, body, 'body'), ...csvProblems(media, body)];
}

function csvProblems(media: Json, body: unknown): string[] {
  const required = media['x-csv-required-columns'];
  if (!Array.isArray(required)) return [];
  const names = String(body).split(/\r?\n/, 1)[0].split(',');
  const oneOf = media['x-csv-one-of-columns'] as string[] | undefined;
  const missing = required.filter((name) => !names.includes(name)).map((name) => `column ${name} is missing`);
  return oneOf === undefined || oneOf.filter((name) => names.includes(name)).length === 1
    ? missing
    : [...missing, `not exactly one of the columns ${oneOf.join(', ')}`];
}

function check(pointer: string, value: unknown, what: string): string[] {
  const validate = ajv.getSchema(`${ROOT}#${encodeURI(pointer)}`);
  if (!validate) throw new Error(`no schema at ${pointer}`);
  if (validate(value)) return [];
  return (validate.errors ?? []).map((error) => `${what}${error.instancePath} ${error.message}`);
}

/** Follows a `$ref` within the document. */
function resolve(value: Json, pointer: string): { value: Json; pointer: string } {
  if (typeof value.$ref !== 'string') return { value, pointer };
  const path = value.$ref.slice(1);
  const parts = path.split('/').slice(1);
  return { value: parts.reduce<Json>((at, part) => object(at[part]), document), pointer: path };
}

function header(headers: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
}

function escaped(part: string): string {
  return part.replaceAll('~', '~0').replaceAll('/', '~1');
}
