import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Json, Output } from '../../support/airbyte/connector.ts';
import { people, record, setUpDeletions, state, statsOf } from '../../support/deletion/deletions.ts';

const setup = setUpDeletions();

const failure = (output: Output) => output.errors().at(-1);

describe('a run that deletes nothing', () => {
  const nothing = (output: Output) => {
    expect(setup.server.seen).toEqual([]);
    expect(output.of('STATE')).toEqual([]);
  };
  const refused = (output: Output) => {
    nothing(output);
    expect(failure(output)).toMatchObject({ failure_type: 'config_error' });
    expect(output.code).not.toBe(0);
  };

  it('is a dry run: it warns first and last, exits with 0, and leaves no file', async () => {
    const output = await setup.write([record('a'), record(null), state(1)], { dry_run: true });
    nothing(output);
    expect(output.code).toBe(0);
    expect(output.messages[0].log).toMatchObject({ level: 'WARN' });
    expect(output.messages.at(-1)?.log).toMatchObject({ level: 'WARN' });
    expect(output.messages.at(-1)?.log?.message).toContain('nothing was deleted');
    expect(existsSync(setup.folders.ledger)).toBe(false);
  });

  it('is refused with 501 ids against a cap of 500', async () => {
    const input = [...Array(501).keys()].map((n) => record(`u${n}`));
    refused(await setup.write([...input, record('u0'), state(1)]));
    expect((await setup.write([...input.slice(0, 500), record('u0')], { requests_per_minute: 1_000_000 })).code).toBe(
      0,
    );
    expect(setup.server.ids()).toHaveLength(500);
  });

  it('is refused with more ids than the allowed share of known profiles', async () => {
    const limits = { max_deletions_percent: 10, known_profiles: 20 };
    const output = await setup.write([record('a'), record('b'), record('c')], limits);
    refused(output);
    expect(failure(output)?.message).toMatch(/15\.00 %.*20.*10 %/);
    expect((await setup.write([record('a'), record('b')], limits)).code).toBe(0);
  });

  it.each<[string, Json, Json]>([
    ['overwrite', { destination_sync_mode: 'overwrite' }, {}],
    ['update', { destination_sync_mode: 'update' }, {}],
    ['a truncating refresh', { generation_id: 3, minimum_generation_id: 3, sync_id: 9 }, {}],
    ['a first truncating refresh', { generation_id: 1, minimum_generation_id: 1 }, {}],
    ['an unknown object', { destination_object_name: 'things', destination_sync_mode: 'soft_delete' }, {}],
    ['an object under another mode', { destination_object_name: 'profiles', destination_sync_mode: 'append' }, {}],
    [
      'another matching key',
      { destination_object_name: 'profiles', destination_sync_mode: 'soft_delete', primary_key: [['email']] },
      {},
    ],
    ['soft_delete without an object', { destination_sync_mode: 'soft_delete' }, {}],
    ['no id in the schema', {}, { json_schema: { type: 'object', properties: { id: { type: 'string' } } } }],
    ['no schema', {}, { json_schema: {} }],
    ['an id that is a number', {}, { json_schema: { properties: { external_id: { type: ['null', 'integer'] } } } }],
    [
      'an id that may be a number',
      {},
      { json_schema: { properties: { external_id: { type: ['string', 'integer'] } } } },
    ],
    [
      'a table of customers',
      {},
      { json_schema: { properties: { external_id: { type: 'string' }, email: { type: 'string' } } } },
    ],
  ])('is refused for a stream with %s', async (_name, more, stream) => {
    refused(await setup.write([record('a'), state(1)], {}, people(more, stream)));
    expect(existsSync(setup.folders.ledger)).toBe(false);
  });

  it('is refused for an unknown stream, which it names', async () => {
    refused(await setup.write([record('a'), record('b', {}, 'strangers'), state(1)]));
  });

  it('is refused with only refused rows', async () => {
    refused(await setup.write([record(''), record(5), record('a', { _ab_cdc_deleted_at: '2026-01-01' }), state(1)]));
  });

  it.each([
    'max_deletion_per_sync',
    'maxDeletionsPerSync',
    'max_deletions',
    'max_delete_percent',
    'know_profiles',
    '_max_deletions_per_sync',
    'on_reject',
  ])('is refused for a misspelt guard: %s', async (key) => {
    const output = await setup.write([record('a'), state(1)], { [key]: 1 });
    expect(output.errors()[0]).toMatchObject({ failure_type: 'config_error', message: expect.stringContaining(key) });
    expect(setup.server.ids()).toEqual([]);
  });

  it('is refused without a folder or a key for its ledger', async () => {
    refused(await setup.write([record('a')], { ledger_dir: undefined }));
  });

  it.each([
    ['not json at all'],
    ['{"type":"RECORD","record":{"stream":"people","data":5}}'],
    ['{"hello":"secret-content"}'],
    ['[1]'],
    [Buffer.from([0x7b, 0xff, 0x7d, 0x0a])],
  ])('is refused for a line that is not a message, whose number is reported, never its content (%#)', async (line) => {
    const output = await setup.write([record('a'), '', line, state(1)]);
    nothing(output);
    expect(failure(output)?.message).toContain('Line 3');
    expect(output.text).not.toMatch(/hello|secret-content|not json at/);
    expect(output.code).not.toBe(0);
  });
});

describe('a run that is accepted', () => {
  it.each<[string, Json, Json]>([
    ['data activation', { destination_object_name: 'profiles', destination_sync_mode: 'soft_delete' }, {}],
    ["PyAirbyte's three ones", { generation_id: 1, minimum_generation_id: 1, sync_id: 1 }, {}],
    ['a generation that keeps everything', { generation_id: 4, minimum_generation_id: 0, sync_id: 8 }, {}],
    [
      'explicit nulls',
      {
        generation_id: null,
        minimum_generation_id: null,
        sync_id: null,
        cursor_field: null,
        primary_key: null,
        destination_object_name: null,
      },
      { namespace: null },
    ],
    [
      'columns of the platform',
      {},
      { json_schema: { properties: { external_id: { type: 'string' }, _airbyte_raw_id: { type: 'string' } } } },
    ],
  ])('with %s', async (_name, more, stream) => {
    const pydantic =
      '{"type":"RECORD","log":null,"record":{"namespace":null,"stream":"people","data":{"external_id":"p","_ab_cdc_deleted_at":null},"emitted_at":1700000000,"meta":null,"file_reference":null},"state":null,"trace":null}';
    const trace =
      '{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":1700000000,"stream_status":{"status":"COMPLETE","stream_descriptor":{"name":"people"}}}}';
    const output = await setup.write([pydantic, state(1), trace], {}, people(more, stream));
    expect(output.errors()).toEqual([]);
    expect(setup.server.ids()).toEqual(['p']);
    expect(statsOf(output)).toEqual([{ recordCount: 1, rejectedRecordCount: 0 }]);
  });

  it('with a wide stream that is named, and another id field', async () => {
    const properties = { user: { type: 'string' }, email: { type: 'string' } };
    const row = JSON.stringify({
      type: 'RECORD',
      record: { stream: 'people', emitted_at: 1, data: { user: 'u', email: 'e' } },
    });
    const output = await setup.write(
      [row],
      { streams: ['people'], external_id_field: 'user' },
      people({}, { json_schema: { properties } }),
    );
    expect(output.code).toBe(0);
    expect(setup.server.ids()).toEqual(['u']);
  });

  it.each(['max_concurrent_request', 'id', 'sync', 'name', 'max'])(
    'with an unknown key that is not a guard, after a warning: %s',
    async (key) => {
      const output = await setup.write([record('a'), state(1)], { [key]: 1 });
      expect(output.code).toBe(0);
      expect(output.text).toContain('mean nothing here');
      expect(setup.server.ids()).toEqual(['a']);
    },
  );

  it('with an empty input, and returns its states', async () => {
    const output = await setup.write([state(1)]);
    expect(output.code).toBe(0);
    expect(statsOf(output)).toEqual([{ recordCount: 0, rejectedRecordCount: 0 }]);
  });

  it('with a ledger in the log', async () => {
    const output = await setup.write([record('a'), state(1)], { ledger_dir: undefined, ledger_key: 'k'.repeat(32) });
    expect(output.code).toBe(0);
    expect(output.logs('ledger.line').map((line) => JSON.parse(line).kind)).toEqual([
      'open',
      'before',
      'after',
      'close',
    ]);
    expect(output.text).not.toContain('k'.repeat(32));
  });
});
