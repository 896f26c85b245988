import { describe, expect, it } from 'vitest';
import { type InputMessage, readMessages } from '../../../src/erasure/input/messages.ts';

async function* of(...parts: (string | Buffer)[]) {
  for (const part of parts) yield Buffer.from(part);
}

async function read(...parts: (string | Buffer)[]) {
  const unknown: number[] = [];
  const messages: InputMessage[] = [];
  for await (const some of readMessages(of(...parts), (line) => unknown.push(line))) messages.push(...some);
  return { messages, unknown };
}

const row = (more: object) => JSON.stringify({ type: 'RECORD', record: { stream: 's', data: { a: 1 }, ...more } });
const stateOf = (state: unknown) => JSON.stringify({ type: 'STATE', state });
const named = (descriptor: unknown) => stateOf({ stream: { stream_descriptor: descriptor } });

describe('the messages of an input', () => {
  it('are its records and states, each with its line, in any chunks', async () => {
    const state = '{"type":"STATE", "state" : {"a": 1.0} }';
    const { messages, unknown } = await read('\n  \n', row({}).slice(0, 20), `${row({}).slice(20)}\n${state}\n`);
    expect(messages).toEqual([
      { kind: 'record', line: 3, stream: { name: 's', namespace: null }, data: { a: 1 } },
      { kind: 'state', line: 4, stream: undefined, text: '{"a": 1.0}' },
    ]);
    expect(unknown).toEqual([]);
  });

  it('are delivered in groups as they arrive', async () => {
    const sizes: number[] = [];
    for await (const some of readMessages(of(`${row({})}\n${row({})}\n`, `${row({})}\n`))) sizes.push(some.length);
    expect(sizes).toEqual([2, 1]);
  });

  it('are refused for a record with a member twice, of which one would be lost', async () => {
    const once = '{"type":"RECORD","record":{"stream":"s","data":{"a":":{\\"","b":[{"a":{}},{"a":null}]}}}\n';
    expect((await read(once)).messages).toHaveLength(1);
    const twice = once.replace('"b"', '"\\u0061"');
    await expect(read(once, twice)).rejects.toThrow(/^Line 2 of the input is a RECORD with a member twice;/);
  });

  it.each([
    ['one of its own', 'n', 'n'],
    ['an empty one, which is none', '', null],
    ['null', null, null],
    ['none', undefined, null],
  ])('have a namespace: %s', async (_name, namespace, wanted) => {
    const { messages } = await read(`${row({ namespace })}\n${named({ name: 's', namespace })}\n`);
    expect(messages.map(({ stream }) => stream)).toEqual([
      { name: 's', namespace: wanted },
      { name: 's', namespace: wanted },
    ]);
  });

  it.each([
    ['of all streams', stateOf({ type: 'GLOBAL', global: {} })],
    ['of the old kind', stateOf({ data: {} })],
    ['with an empty stream', stateOf({ stream: null })],
    ['without a descriptor', stateOf({ stream: { stream_state: {} } })],
  ])('include a state %s', async (_name, text) => {
    expect((await read(text)).messages).toMatchObject([{ kind: 'state', stream: undefined }]);
  });

  it('exclude other known types, and unknown ones are reported with their line', async () => {
    const known = ['LOG', 'SPEC', 'CONNECTION_STATUS', 'CATALOG', 'TRACE', 'CONTROL', 'DESTINATION_CATALOG'];
    const lines = [...known, 'NEWS', 'record'].map((type) => JSON.stringify({ type }));
    expect(await read(lines.join('\n'))).toEqual({ messages: [], unknown: [8, 9] });
    for await (const some of readMessages(of('{"type":"NEWS"}\n'))) expect(some).toEqual([]);
  });

  it.each<[string, string | Buffer, RegExp]>([
    ['bytes that are no text', Buffer.from([0x22, 0xff, 0x22]), /not valid UTF-8/],
    ['no JSON', '{"type"', /is not JSON/],
    ['no object', '[]', /no message/],
    ['null', 'null', /no message/],
    ['no type', '{"record":{}}', /no message/],
    ['a type that is no text', '{"type":5}', /no message/],
    ['a RECORD without content', '{"type":"RECORD"}', /RECORD without data/],
    ['a RECORD without data', '{"type":"RECORD","record":{"stream":"s"}}', /RECORD without data/],
    ['a RECORD with a list for data', row({ data: [1] }), /RECORD without data/],
    ['a RECORD without a stream', row({ stream: undefined }), /RECORD without a stream/],
    ['a STATE without content', '{"type":"STATE"}', /STATE without content/],
    ['a STATE that is no object', stateOf(5), /STATE without content/],
    ['a STATE of a stream without a name', named({ namespace: 'n' }), /STATE of a stream without a name/],
  ])('end at a line with %s, by its number', async (_name, line, why) => {
    const input = Buffer.concat([Buffer.from(`${row({})}\n`), Buffer.from(line), Buffer.from('\n')]);
    const broken = read(input);
    await expect(broken).rejects.toMatchObject({ message: expect.stringMatching(why), where: { row: 2 } });
    await expect(broken).rejects.toThrow('Line 2 of the input');
  });
});
