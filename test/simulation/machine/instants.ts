/** The time of the simulation, by the real time from which on it was that; ms. */
const instants: { readonly real: number; readonly simulation: number }[] = [];

/** Times of files are those of the simulation: to be called whenever its clock has changed. */
export function noteInstant(simulation: number): void {
  instants.push({ real: Date.now(), simulation });
}

/** When a file was written, as the simulation sees it, given when it really was. */
export function simulatedTime(real: number): number {
  const first = instants[0];
  if (first === undefined || real < first.real - 60_000) return real;
  let found = first.simulation;
  for (const instant of instants) if (instant.real <= real) found = instant.simulation;
  return found;
}

export function forgetInstants(): void {
  instants.length = 0;
}
