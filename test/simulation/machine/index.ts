import { simulatedRandom } from './chance.ts';
import { installEngine } from './engine.ts';
import { current } from './process.ts';

type Callback = (...parameters: unknown[]) => void;

/** Replaces global functions for simulated processes. */
export function installMachine(): void {
  installEngine();
  Math.random = simulatedRandom;
  const immediate = setImmediate;
  const interval = setInterval;
  const turn = (callback: Callback, ...parameters: unknown[]) => {
    const process = current();
    if (process === undefined) return immediate(callback, ...parameters);
    process.scheduler.pushInto(process.turns, process, () => callback(...parameters));
    return undefined;
  };
  // Only progress bars use intervals: a simulation needs none.
  const repeat = (callback: Callback, ms: number) => (current() === undefined ? interval(callback, ms) : undefined);
  Object.assign(globalThis, { setImmediate: turn, setInterval: repeat });
}
