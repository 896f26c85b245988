import { configFailure } from '../base/errors.ts';
import { keyOf } from './configured-catalog.ts';
import { isObject, type JsonObject, textOf } from './json.ts';
import type { StreamDescriptor } from './messages.ts';

/** What was saved by earlier runs, whichever of the protocol's forms it came in. */
export interface StateInput {
  /** By `keyOf(descriptor)`. A stream that was saved without a state is not in it. */
  readonly streams: ReadonlyMap<string, JsonObject>;
  /** The state of a LEGACY message, or a bare object that is none of the other forms. */
  readonly legacy: JsonObject | undefined;
  /** The shared part of a GLOBAL state. */
  readonly shared: JsonObject | undefined;
}

const NO_STATE: StateInput = { streams: new Map(), legacy: undefined, shared: undefined };

/** The saved state of one stream, if any; a legacy object is that of every stream, or a map of them by name. */
export const stateOf = (input: StateInput, stream: StreamDescriptor): JsonObject | undefined =>
  input.streams.get(keyOf(stream)) ?? legacyOf(input.legacy, stream.name);

function legacyOf(legacy: JsonObject | undefined, name: string): JsonObject | undefined {
  if (legacy === undefined || !Object.values(legacy).every(isObject)) return legacy;
  const own = Object.hasOwn(legacy, name) ? legacy[name] : undefined;
  return isObject(own) ? own : undefined;
}

/** Parses the content of a state file: absent, `[]`, a list of states, one state, or a legacy object. */
export function parseStateInput(value: unknown): StateInput {
  if (value === undefined || value === null) return NO_STATE;
  const found = new ParsedStates();
  if (Array.isArray(value)) for (const [i, one] of value.entries()) found.add(one, i);
  else found.add(value, 0);
  return found;
}

class ParsedStates implements StateInput {
  readonly streams = new Map<string, JsonObject>();
  legacy: JsonObject | undefined;
  shared: JsonObject | undefined;

  add(value: unknown, index: number): void {
    const state = unwrapped(value);
    if (!isObject(state)) throw unusable(index, 'it is not an object');
    if (isObject(state.stream)) this.#addStream(state.stream, index);
    else if (isObject(state.global)) this.#addGlobal(state.global, index);
    else if (isObject(state.data)) this.legacy = notEmpty(state.data);
    else if (state.type === 'STREAM' || state.type === 'GLOBAL')
      throw unusable(index, `a ${state.type} without content`);
    else if (state.type !== 'LEGACY') this.legacy = notEmpty(state);
  }

  #addStream(value: JsonObject, index: number): void {
    const { stream_descriptor: at, stream_state: state } = value;
    const name = isObject(at) ? textOf(at.name) : undefined;
    if (name === undefined || !isObject(at)) throw unusable(index, 'its stream has no name');
    // Taken for none, it would make an appended table have every row twice.
    if (state !== undefined && state !== null && !isObject(state))
      throw unusable(index, `the state of its stream ${name} is not an object`);
    const namespace = textOf(at.namespace);
    if (isObject(state)) this.streams.set(keyOf(namespace === undefined ? { name } : { name, namespace }), state);
  }

  #addGlobal(value: JsonObject, index: number): void {
    if (isObject(value.shared_state)) this.shared = value.shared_state;
    if (!Array.isArray(value.stream_states)) return;
    for (const one of value.stream_states) if (isObject(one)) this.#addStream(one, index);
  }
}

/** A state that was saved together with its envelope. */
const unwrapped = (value: unknown): unknown =>
  isObject(value) && value.type === 'STATE' && isObject(value.state) ? value.state : value;

const notEmpty = (value: JsonObject): JsonObject | undefined => (Object.keys(value).length > 0 ? value : undefined);

const unusable = (index: number, why: string) =>
  configFailure(
    `The saved state is not usable: item ${index + 1}: ${why}. Reset the connection's state to start anew.`,
  );
