import { simulatedRandom } from './chance.ts';
import { installEngine } from './engine.ts';
import { current } from './process.ts';

type Callback = (...parameters: unknown[]) => void;

/** Puts what is global under the rule of the simulation, for its processes alone. */
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
  // A progress bar is nothing that a simulation needs.
  const repeat = (callback: Callback, ms: number) => (current() === undefined ? interval(callback, ms) : undefined);
  Object.assign(globalThis, { setImmediate: turn, setInterval: repeat });
}
