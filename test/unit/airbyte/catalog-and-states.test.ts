import { describe, expect, it } from 'vitest';
import {
  parseConfiguredCatalog,
  parseSavedStates,
  streamKey,
} from '../../../src/airbyte/protocol/catalog-and-states.ts';

const stream = (name: string, value: unknown, namespace?: string | null) => ({
  type: 'STREAM',
  stream: { stream_descriptor: { name, ...(namespace !== undefined && { namespace }) }, stream_state: value },
});

const parsed = (value: unknown) => Object.fromEntries(parseSavedStates(value));

describe('a saved state', () => {
  it('is found by stream, with any spelling of an absent namespace', () => {
    const found = parseSavedStates([
      stream('a', { n: 1 }, null),
      stream('b', { n: 2 }, ''),
      stream('a', { n: 3 }, 'x'),
    ]);
    expect(found.get(streamKey({ name: 'a' }))).toEqual({ n: 1 });
    expect(found.get(streamKey({ name: 'b' }))).toEqual({ n: 2 });
    expect(found.get(streamKey({ name: 'a', namespace: 'x' }))).toEqual({ n: 3 });
    expect(found.get(streamKey({ name: 'c' }))).toBeUndefined();
  });

  it.each([[1], ['x'], [[1]], [true]])('is refused if a stream has no object: %j', (value) => {
    expect(() => parsed([stream('events', value)])).toThrow(/item 1: the state of its stream events is not an object/);
  });

  it.each([[[5]], ['text'], [[{ type: 'STREAM' }]], [[{ stream: { stream_state: {} } }]], [{ version: 1 }]])(
    'is refused: %j',
    (value) => {
      expect(() => parsed(value)).toThrow(/saved state/);
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
    expect(parseConfiguredCatalog(value)[0]).toMatchObject({
      descriptor: { name: 'a' },
      properties: new Map(),
      primaryKey: [],
      generationId: undefined,
    });
  });

  it.each([[undefined], [{}], [{ streams: [{}] }], [{ streams: [{ stream: { name: '' } }] }]])(
    'is refused: %j',
    (value) => {
      expect(() => parseConfiguredCatalog(value)).toThrow(/^The configured catalog is not usable: /);
    },
  );
});
