import { syncBuiltinESMExports } from 'node:module';

type Call = (...all: unknown[]) => unknown;

/**
 * Does work while one function of the system behaves as `instead` says, which gets the real one first: for what disks and
 * other processes do between two calls.
 */
export async function withCall<T>(
  system: object,
  name: string,
  instead: (real: Call, ...all: unknown[]) => unknown,
  work: () => T | Promise<T>,
): Promise<T> {
  const calls = system as Record<string, Call>;
  const real = calls[name];
  calls[name] = function (this: unknown, ...all) {
    return instead.call(this, real.bind(this), ...all);
  };
  syncBuiltinESMExports();
  try {
    return await work();
  } finally {
    calls[name] = real;
    syncBuiltinESMExports();
  }
}

/** An error as the system's. */
export const systemError = (code: string, syscall?: string): Error =>
  Object.assign(new Error(`${code}: it said`), { code, syscall });
