import { setTimeout } from 'node:timers/promises';
import { vi } from 'vitest';
import { Engine } from '../../../src/engine/session/engine.ts';

/** Runs `work` while DuckDB has memory for one statement beside others at a time: a second one runs out of it. */
export async function withMemoryForOneStatement<T>(work: () => Promise<T>): Promise<T> {
  const { rowsOnOwnConnection } = Engine.prototype;
  let running = 0;
  const spy = vi.spyOn(Engine.prototype, 'rowsOnOwnConnection').mockImplementation(async function (this: Engine, sql) {
    if (running > 0) throw new Error('Out of Memory Error: could not allocate block');
    running++;
    try {
      await setTimeout(100);
      return await rowsOnOwnConnection.call(this, sql);
    } finally {
      running--;
    }
  });
  try {
    return await work();
  } finally {
    spy.mockRestore();
  }
}
