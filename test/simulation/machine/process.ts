import { running, type Scheduler } from './scheduler.ts';

/**
 * Kinds of effects that a process has on the simulation outside it; `store`: a name changes where it stores its data, or a commit
 * of the database that is its place.
 */
export type Effect = 'write' | 'rename' | 'store' | 'remove' | 'sync' | 'create' | 'statement' | 'commit' | 'send';

/** Around which effect a process is killed: the n-th of a kind, or of any. */
export interface Kill {
  readonly effect: Effect | 'any';
  /** Number of the process, from 1. */
  readonly nth: number;
  /** `after`: it takes place, and nothing after it does. */
  readonly side: 'before' | 'after';
}

/** Thrown in a killed process that would go on without waiting for anything. */
class Killed extends Error {}

/** No real process has such ids. */
let lastPid = 2 ** 23;

/** Something of a process that the test has to close after a kill. */
export interface Native {
  closeSync(): void;
}

/** One process of a simulated machine: it may be killed, and its disk may be full. */
export class MachineProcess {
  readonly pid = ++lastPid;
  readonly scheduler: Scheduler;
  readonly sockets = new Set<{ abandon(): void }>();
  readonly natives = new Set<Native>();
  /** DuckDB files that it has open for writing. */
  readonly databases = new Set<string>();
  /** Its own callbacks in the event loop. */
  readonly turns: (() => void)[] = [];
  isDead = false;
  /** Number of bytes that still fit on its disk. */
  diskLeft = Number.POSITIVE_INFINITY;
  /** How long its disk takes to store something, in ms. */
  diskMs = 0;
  /** Path of the target that it may load. */
  place: string | undefined;
  readonly effects = new Map<Effect | 'any', number>();
  readonly #kill: Kill | undefined;
  readonly #stop: (() => void) | undefined;
  /** The next effect is the one before which it is killed. */
  #isNext = false;
  #isOver = false;

  /** `stop`: what happens before that effect in place of a kill, such as a cut of the power. */
  constructor(scheduler: Scheduler, kill?: Kill, stop?: () => void) {
    this.scheduler = scheduler;
    this.#kill = kill;
    this.#stop = stop;
  }

  /** Called before each effect with all its kinds; throws if the process is dead, or is killed now. */
  effect(...kinds: readonly Effect[]): void {
    if (this.isDead) throw new Killed('this process is dead');
    for (const one of [...kinds, 'any'] as const) this.effects.set(one, (this.effects.get(one) ?? 0) + 1);
    if (!this.#isDue(kinds)) return;
    if (this.#stop === undefined) {
      this.kill();
      throw new Killed('this process was killed');
    }
    this.#stop();
    if (this.isDead) throw new Killed('the power is cut');
  }

  #isDue(kinds: readonly Effect[]): boolean {
    if (this.#kill === undefined || this.#isOver) return false;
    const { effect, nth, side } = this.#kill;
    const isHere = this.#isNext || (this.effects.get(effect) === nth && (effect === 'any' || kinds.includes(effect)));
    if (isHere && side === 'after' && !this.#isNext) {
      this.#isNext = true;
      return false;
    }
    this.#isOver = isHere;
    return isHere;
  }

  kill(): void {
    this.isDead = true;
    for (const socket of this.sockets) socket.abandon();
  }

  /** Runs work when its turn comes, after `ms` at the earliest; never if the process is dead by then. */
  turn<T>(work: () => T, ms = 0): Promise<T> {
    const called = new Error('called');
    const happens = (then: () => void) =>
      ms > 0 ? void this.scheduler.after(this, ms, then) : this.scheduler.push(this, then);
    return new Promise((resolve, reject) => {
      happens(() => {
        try {
          resolve(work());
        } catch (error) {
          if (this.isDead) return;
          // The stack of the call, not of its turn.
          if (error instanceof Error)
            error.stack = `${error.message}\n${called.stack?.split('\n').slice(2).join('\n')}`;
          reject(error);
        }
      });
    });
  }

  /** How many of these bytes the disk takes; throws ENOSPC when it takes none. */
  room(bytes: number): number {
    if (bytes === 0) return 0;
    const fit = Math.min(bytes, this.diskLeft);
    if (fit <= 0) throw diskIsFull();
    this.diskLeft -= fit;
    return fit;
  }
}

export function current(): MachineProcess | undefined {
  const owner = running.getStore();
  return owner instanceof MachineProcess ? owner : undefined;
}

const diskIsFull = () =>
  Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC', errno: -28, syscall: 'write' });
