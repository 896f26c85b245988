import { isPurgeTarget, TARGETS } from '../../sinks/targets.ts';

/** `duckdb FILE or parquet DIR`, each in these quotes. */
export function purgePlaces(quote = ''): string {
  const places = TARGETS.filter(isPurgeTarget).map(
    ({ name, place }) => `${quote}${name} ${place.name.toUpperCase()}${quote}`,
  );
  return places.join(' or ');
}
