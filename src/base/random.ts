/** Uniform in [0, 1): injected, so that jitter is repeatable in tests. */
export type Random = () => number;

export const systemRandom: Random = () => Math.random();
