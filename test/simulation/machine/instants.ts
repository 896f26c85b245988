/** ms that the world's clock was at, by the real time from which on it was. */
const instants: { readonly real: number; readonly world: number }[] = [];

/** Instants of files are those of the world: to be called whenever its time has passed. */
export function noteInstant(world: number): void {
  instants.push({ real: Date.now(), world });
}

/** When a file was written, as the world sees it, given when it really was. */
export function worldTime(real: number): number {
  const first = instants[0];
  if (first === undefined || real < first.real - 60_000) return real;
  let found = first.world;
  for (const instant of instants) if (instant.real <= real) found = instant.world;
  return found;
}

export function forgetInstants(): void {
  instants.length = 0;
}
