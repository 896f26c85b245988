/** So long nothing takes that still comes, on a machine however slow. */
const MAX_MS = 300_000;
const PAUSE_MS = 2;

/** Waits for something to become so; throws after five minutes in which it did not. */
export async function until(isSo: () => boolean): Promise<void> {
  const end = performance.now() + MAX_MS;
  while (!isSo()) {
    if (performance.now() > end) throw new Error(`it never became so: ${isSo}`);
    await new Promise((next) => setTimeout(next, PAUSE_MS));
  }
}

/** A promise, and what fulfils it. */
export function deferred<T = void>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}
