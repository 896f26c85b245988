import { describe, expect, it } from 'vitest';
import { parseConnectorArguments } from '../../../src/airbyte/protocol/entrypoint.ts';
import { parseConfiguredCatalog, parseStateInput, savedState } from '../../../src/airbyte/protocol/input.ts';

const stream = (name: string, value: unknown, namespace?: string | null) => ({
  type: 'STREAM',
  stream: { stream_descriptor: { name, ...(namespace !== undefined && { namespace }) }, stream_state: value },
});

describe('a saved state', () => {
  it.each<[string, unknown]>([
    ['absent', undefined],
    ['null', null],
    ['an empty list', []],
    ['an empty object', {}],
    ['LEGACY without data', { type: 'LEGACY' }],
    ['LEGACY with empty data', [{ type: 'LEGACY', data: {} }]],
    ['a stream without a state', [stream('a', null)]],
  ])('may be %s', (_name, value) => {
    const { streams, legacy } = parseStateInput(value);
    expect([streams.size, legacy]).toEqual([0, undefined]);
  });

  it('is found by stream, with any spelling of an absent namespace', () => {
    const found = parseStateInput([stream('a', { n: 1 }, null), stream('b', { n: 2 }), stream('a', { n: 3 }, 'x')]);
    expect(savedState(found, { name: 'a' })).toEqual({ n: 1 });
    expect(savedState(found, { name: 'b', namespace: null })).toEqual({ n: 2 });
    expect(savedState(found, { name: 'a', namespace: 'x' })).toEqual({ n: 3 });
    expect(savedState(found, { name: 'c' })).toBeUndefined();
    const empty = parseStateInput([stream('a', { n: 4 }, '')]);
    expect(savedState(empty, { name: 'a' })).toEqual({ n: 4 });
    expect(savedState(found, { name: 'b', namespace: '' })).toEqual({ n: 2 });
  });

  it('may be global, legacy, bare, single or in its envelope', () => {
    const global = {
      type: 'GLOBAL',
      global: { shared_state: { s: 1 }, stream_states: [stream('a', { n: 1 }).stream] },
    };
    expect(savedState(parseStateInput([global]), { name: 'a' })).toEqual({ n: 1 });
    expect(parseStateInput({ type: 'LEGACY', data: { n: 1 } }).legacy).toEqual({ n: 1 });
    expect(parseStateInput({ version: 1 }).legacy).toEqual({ version: 1 });
    expect(savedState(parseStateInput(stream('a', { n: 1 })), { name: 'a' })).toEqual({ n: 1 });
    expect(savedState(parseStateInput([{ type: 'STATE', state: stream('a', { n: 1 }) }]), { name: 'a' })).toEqual({
      n: 1,
    });
  });

  it('may have the oldest form: one state for all streams, or a state by stream name', () => {
    const one = parseStateInput({ version: 1, from_date: '2026-01-02', future: { n: 1 } });
    expect(savedState(one, { name: 'a' })).toMatchObject({ from_date: '2026-01-02' });
    for (const map of [{ a: { n: 1 }, b: { n: 2 } }, [{ type: 'LEGACY', data: { a: { n: 1 }, b: { n: 2 } } }]]) {
      expect(savedState(parseStateInput(map), { name: 'b' })).toEqual({ n: 2 });
      expect(savedState(parseStateInput(map), { name: 'c' })).toBeUndefined();
    }
  });

  it.each([[1], ['x'], [[1]], [true]])('must be an object or absent for each stream: %j is refused', (state) => {
    const message = { type: 'STREAM', stream: { stream_descriptor: { name: 'events' }, stream_state: state } };
    expect(() => parseStateInput([message])).toThrow(/item 1: the state of its stream events is not an object/);
    const unset = { type: 'STREAM', stream: { stream_descriptor: { name: 'events' }, stream_state: null } };
    expect(parseStateInput([unset]).streams.size).toBe(0);
  });

  it.each([[[5]], ['text'], [[{ type: 'STREAM' }]], [[{ stream: { stream_state: {} } }]]])(
    'is refused: %j',
    (value) => {
      expect(() => parseStateInput(value)).toThrow(/saved state/);
    },
  );
});

describe('a configured catalog', () => {
  it('reads null as absent and ignores unknown keys', () => {
    const value = {
      streams: [
        {
          stream: { name: 'a', namespace: null, json_schema: null },
          sync_mode: 'incremental',
          destination_sync_mode: 'append',
          cursor_field: null,
          primary_key: null,
          generation_id: null,
          later: 1,
        },
      ],
    };
    expect(parseConfiguredCatalog(value).streams[0]).toMatchObject({
      descriptor: { name: 'a' },
      namespace: undefined,
      jsonSchema: {},
      primaryKey: [],
      generationId: undefined,
    });
  });

  it.each([[undefined], [{}], [{ streams: [{}] }], [{ streams: [{ stream: { name: '' } }] }]])(
    'is refused: %j',
    (value) => {
      expect(() => parseConfiguredCatalog(value)).toThrow(/catalog/);
    },
  );

  it('names a duplicate stream', () => {
    const one = { stream: { name: 'a' } };
    expect(() => parseConfiguredCatalog({ streams: [one, one] })).toThrow(/"a" occurs twice/);
  });
});

describe('the command line', () => {
  const verbs = ['spec', 'check', 'read'] as const;

  it('is parsed in both spellings', () => {
    expect(
      parseConnectorArguments(['read', '--config=a=b', '--debug', '--catalog', 'c', '--state', 's'], verbs),
    ).toEqual({
      verb: 'read',
      config: 'a=b',
      catalog: 'c',
      state: 's',
      isDebug: true,
    });
  });

  it.each([
    [[], 'wanted one of spec, check, read'],
    [['write', '--config', 'c', '--catalog', 'd'], 'wanted one of spec, check, read'],
    [['check'], '--config'],
    [['check', '--config'], '--config FILE'],
    [['read', '--config', 'c'], '--catalog'],
    [['check', '--config', 'c', '--token=hush'], 'not understood'],
    [['check', '--config', 'c', 'hush'], 'not understood'],
  ])('is refused: %j', (words, says) => {
    let message = '';
    try {
      parseConnectorArguments(words, verbs);
    } catch (error) {
      message = String(error);
    }
    expect(message).toContain(says);
    expect(message).not.toContain('hush');
  });
});
