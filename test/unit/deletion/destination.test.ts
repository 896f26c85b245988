import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { inputStreams } from '../../../src/airbyte/destination/catalog.ts';
import { parseConfiguredCatalog } from '../../../src/airbyte/protocol/input.ts';
import type { Json } from '../../support/airbyte/connector.ts';
import { code, json, people, record, run, SUCCESS, setUpDeletions, state } from '../../support/deletion/deletions.ts';

const setup = setUpDeletions({ service_id: 's', import_token: 'tok-1234' });
const textType = { type: 'string' };

interface Shape {
  readonly properties?: unknown;
  readonly more?: Json;
  readonly name?: string;
  readonly namespace?: string | null;
}
const streamOf = ({ properties = { external_id: textType }, more = {}, name = 'people', namespace = null }: Shape) => ({
  stream: { name, namespace, json_schema: { type: 'object', properties } },
  sync_mode: 'incremental',
  destination_sync_mode: 'append',
  ...more,
});
const planned = (shapes: readonly Shape[], streams: readonly string[] = [], externalIdField = 'external_id') =>
  inputStreams(parseConfiguredCatalog({ streams: shapes.map(streamOf) }), { externalIdField, streams });
const activation = (more: Json = {}): Json => ({
  destination_object_name: 'profiles',
  destination_sync_mode: 'soft_delete',
  ...more,
});
const generation = (generation_id: unknown, minimum_generation_id: unknown, sync_id: unknown): Json => ({
  generation_id,
  minimum_generation_id,
  sync_id,
});

describe('the streams of a connection', () => {
  it('are found by name and namespace, each with its location and its id field', () => {
    const plans = planned([{}, { namespace: 'n' }, { name: 'more', more: activation() }], [], 'external_id');
    expect(plans({ name: 'people', namespace: null })).toEqual({ index: 0, idField: 'external_id' });
    expect(plans({ name: 'people', namespace: 'n' })).toMatchObject({ index: 1 });
    expect(plans({ name: 'more' })).toMatchObject({ index: 2 });
    expect(plans({ name: 'more', namespace: 'n' })).toBeUndefined();
    expect(plans({ name: 'other' })).toBeUndefined();
  });

  it('are read by the configured field, except data activation, which has its own', () => {
    const user = { user: textType };
    expect(planned([{ properties: user }], [], 'user')({ name: 'people' })?.idField).toBe('user');
    expect(planned([{ more: activation() }], [], 'user')({ name: 'people' })?.idField).toBe('external_id');
    expect(() => planned([{ properties: user, more: activation() }], [], 'user')).toThrow('no property "external_id"');
  });

  it('are refused all at once, each by name', () => {
    const shapes = [{ more: { destination_sync_mode: 'overwrite' } }, {}, { properties: {} }];
    const named = shapes.map((shape, n) => ({ ...shape, name: `s${n}` }));
    expect(() => planned(named)).toThrow(
      expect.objectContaining({
        kind: 'config',
        message: expect.stringMatching(
          /stream s0: the sync mode "overwrite" .*; stream s2: its schema has no property/,
        ),
      }),
    );
    expect(() => planned(named)).not.toThrow('s1');
  });

  it.each([
    ['a text', { type: 'string' }, true],
    ['a text or null', { type: ['null', 'string'] }, true],
    ['a text in a list', { type: ['string'] }, true],
    ['null alone', { type: ['null'] }, false],
    ['a text or a number', { type: ['string', 'number'] }, false],
    ['two texts', { type: ['string', 'string'] }, false],
    ['a number', { type: 'number' }, false],
    ['no type', {}, false],
    ['anything', true, false],
    ['nothing', null, false],
  ])('must have an id of type string in the schema: %s', (_name, external_id, fits) => {
    const plan = () => planned([{ properties: { external_id } }]);
    if (fits) expect(plan).not.toThrow();
    else expect(plan).toThrow('"external_id" is not a string in its schema');
  });

  it.each([
    [['external_id', '_airbyte_id'], undefined],
    [['external_id', 'a'], '(\\("a"\\))'],
    [['external_id', 'a', 'b', 'c', 'd', 'e'], '("a", "b", "c", "d", "e"\\))'],
    [['external_id', 'a', 'b', 'c', 'd', 'e', 'f'], '("a", "b", "c", "d", "e", …\\))'],
  ])('must have the id alone, or be named in the configuration: %s', (names, shown) => {
    const properties = Object.fromEntries(names.map((name) => [name, textType]));
    if (shown === undefined) expect(() => planned([{ properties }])).not.toThrow();
    else expect(() => planned([{ properties }])).toThrow(new RegExp(`more than the ID .*${shown}, as a table`));
    expect(() => planned([{ properties }], ['people'])).not.toThrow();
    if (shown !== undefined) expect(() => planned([{ properties }], ['others'])).toThrow('as a table of customers');
  });

  it.each<[string, Json, boolean]>([
    ['PyAirbyte’s three ones', generation(1, 1, 1), true],
    ['another generation', generation(2, 1, 1), false],
    ['another minimum', generation(1, 2, 1), false],
    ['another sync', generation(1, 1, 2), false],
    ['a minimum of none', generation(7, 0, 9), true],
    ['no minimum', generation(7, undefined, 9), true],
  ])('must not be a refresh that removes rows: %s', (_name, more, fits) => {
    const plan = () => planned([{ more }]);
    if (fits) expect(plan).not.toThrow();
    else expect(plan).toThrow('a refresh that removes what was there');
  });

  it.each<[string, Json, string | undefined]>([
    ['its own key', { primary_key: [['external_id']] }, undefined],
    ['no key', { primary_key: [] }, undefined],
    ['another key', { primary_key: [['email']] }, 'matching key must be external_id'],
    ['a nested key', { primary_key: [['external_id', 'x']] }, 'matching key must be external_id'],
    ['two keys', { primary_key: [['external_id'], ['email']] }, 'matching key must be external_id'],
    ['another object', { destination_object_name: 'people' }, 'there is no object "people"'],
    ['another mode', { destination_sync_mode: 'append' }, 'profiles has no "append"'],
  ])('of data activation must have the one object, mode and key: %s', (_name, more, problem) => {
    const plan = () => planned([{ more: activation(more) }]);
    if (problem === undefined) expect(plan).not.toThrow();
    else expect(plan).toThrow(problem);
  });
});

describe('write', () => {
  it('takes only own members of a record as an id', async () => {
    const field = { external_id_field: 'toString' };
    const catalog = people({}, { json_schema: { properties: { toString: textType } } });
    const output = await setup.write([record('a'), state(1)], field, catalog);
    expect(output.text).toContain('1 of 1 rows are refused and never sent (1: the ID field is missing or null)');
    expect(setup.server.ids()).toEqual([]);
  });

  it('refuses a state of an unknown stream', async () => {
    const output = await setup.write([record('a'), state(1, 'strangers')]);
    expect(output.errors()[0].message).toContain('line 2 of the input is of the stream "strangers"');
    expect(output.text).toContain('(row 2)');
    expect(setup.server.ids()).toEqual([]);
  });

  it('logs unknown keys and the estimated duration', async () => {
    const ids = [...Array(30).keys()].map((n) => record(`u${n}`));
    const output = await setup.write(['{"type":"NEWS"}', ...ids, state(1)], { requests_per_minute: 60 });
    expect(output.text).toContain('Line 1 of the input is a message of an unknown type');
    expect(output.text).toMatch(/Deleting 30 profiles: about 30 ?s[a-z]* at 60 a minute\./);
    expect(output.text).toMatch(/"deleted +30"/);
    expect(output.code).toBe(0);
  });

  it('reports what an unfinished run has done, in a dry run too', async () => {
    setup.answer = ({ id }, response) => (id === 'c' ? code(response, '40201') : json(response, SUCCESS));
    const input = [...['a', 'b', 'c'].map((id) => record(id)), state(1)];
    await setup.write(input);
    setup.answer = (_d, response) => json(response, SUCCESS);
    const dry = await setup.write(input, { dry_run: true });
    expect(dry.text).toContain('DRY RUN: nothing was deleted. 1 profile would be');
    const output = await setup.write(input);
    expect(output.text).toContain('Deleting 1 profile (2 were done by the unfinished run before): about');
  });

  it('closes its connections', async () => {
    await setup.write([record('a'), state(1)]);
    await expect.poll(() => setup.server.connections()).toBe(0);
  });

  it('begins no run if it is stopped while it reads', async () => {
    const stop = new AbortController();
    const words = ['write', '--config', setup.files.write(setup.config())];
    const catalog = ['--catalog', setup.files.write(people(), 'txt')];
    const input = (async function* () {
      yield `${record('a')}\n`;
      stop.abort(new Error('stopped'));
      yield `${record('b')}\n`;
    })();
    const output = await run([...words, ...catalog], { input, signal: stop.signal });
    expect(output.code).toBe(1);
    expect(setup.folders.ledgerFiles()).toEqual([]);
  });
});

describe('a dry run', () => {
  const dry = (input: readonly string[], more: Json = {}) => setup.write(input, { dry_run: true, ...more });

  it('reports that a real run would stop at a cap, and deletes nothing', async () => {
    const output = await dry([record('a'), record('b')], { max_deletions_per_sync: 1 });
    expect(output.text).toContain('A real run would stop before its first deletion: 2 profiles would be deleted');
    expect(output.code).toBe(0);
    expect((await dry([record('a')], { max_deletions_per_sync: 1 })).text).not.toContain('would stop');
  });

  it('exits as a real run would under on_rejected "fail"', async () => {
    const refused = await dry([record('a'), record('')], { on_rejected: 'fail' });
    expect(refused.errors()[0].message).toContain('1 of 2 rows are refused and never sent');
    expect(refused.code).toBe(1);
    expect((await dry([record('a')], { on_rejected: 'fail' })).code).toBe(0);
    expect((await dry([record('a'), record('')])).code).toBe(0);
  });

  it('needs no ledger', async () => {
    expect((await dry([record('a')], { ledger_dir: undefined })).code).toBe(0);
  });
});

describe('check', () => {
  const check = async (more: Json = {}) => {
    const output = await run(['check', '--config', setup.files.write(setup.config(more))]);
    return output.of('CONNECTION_STATUS')[0].connectionStatus;
  };

  it('connects to the host without a deletion, and leaves no file', async () => {
    expect(await check()).toEqual({
      status: 'SUCCEEDED',
      message: 'The host answers. Whether the token is right only the first deletion shows.',
    });
    expect(setup.server.seen.map(({ method, url }) => [method, url])).toEqual([['HEAD', '/']]);
    expect(readdirSync(setup.folders.root)).toEqual([]);
    await expect.poll(() => setup.server.connections()).toBe(0);
    expect((await check({ dry_run: true }))?.message).toMatch(/^dry_run is on: nothing will be deleted\. The host/);
  });

  it('requires a ledger, except for a dry run', async () => {
    expect(await check({ ledger_dir: undefined })).toMatchObject({ status: 'FAILED' });
    expect(await check({ ledger_dir: undefined, dry_run: true })).toMatchObject({ status: 'SUCCEEDED' });
    expect(await check({ ledger_dir: undefined, ledger_key: 'k'.repeat(32) })).toMatchObject({ status: 'SUCCEEDED' });
  });

  it('requires a writable location of the ledger', async () => {
    writeFileSync(join(setup.folders.root, 'file'), '');
    const inFile = join(setup.folders.root, 'file', 'ledger');
    expect((await check({ ledger_dir: inFile }))?.message).toMatch(/ledger_dir .* cannot be written/);
    expect(await check({ ledger_dir: join(setup.folders.root, 'a', 'b') })).toMatchObject({ status: 'SUCCEEDED' });
    expect(readdirSync(setup.folders.root)).toEqual(['file']);
  });

  it('verifies an existing ledger', async () => {
    await setup.write([record('a'), state(1)]);
    expect(await check()).toMatchObject({ status: 'SUCCEEDED' });
    expect((await check({ ledger_key: 'k'.repeat(32) }))?.message).toContain('under another key');
    chmodSync(join(setup.folders.ledger, 'ledger.key'), 0o644);
    expect((await check())?.message).toContain('0600');
    rmSync(join(setup.folders.ledger, 'ledger.key'));
    expect(await check()).toMatchObject({ status: 'FAILED', message: expect.stringContaining('lost its key') });
  });

  it('reports a host that does not answer, and advises on base_url', async () => {
    const port = Number(new URL(setup.server.url).port);
    await setup.server.close();
    expect((await check({ base_url: `http://127.0.0.1:${port}` }))?.message).toMatch(
      /was not reached: .*refused the connection.*; check base_url\./,
    );
  });

  it('warns of unknown keys', async () => {
    mkdirSync(setup.folders.ledger);
    const output = await run(['check', '--config', setup.files.write(setup.config({ colour: 'red' }))]);
    expect(output.text).toContain('keys that mean nothing here: colour');
    expect((await run(['check', '--config', setup.files.write(setup.config())])).text).not.toContain('mean nothing');
  });
});
