const MS_PER_DAY = 86_400_000;
const TWO = Array.from({ length: 60 }, (_, i) => String(i).padStart(2, '0'));
const THREE = Array.from({ length: 1_000 }, (_, i) => String(i).padStart(3, '0'));

/** Writes instants (ms, UTC) as the export does: without a zone, in a place so far ahead of UTC. */
export interface Stamps {
  /** `yyyy-MM-dd HH:mm:ss.SSS` */
  full(ms: number): string;
  /** `yyyy.M.d H:mm` */
  short(ms: number): string;
}

export function createStamps(offsetMs: number): Stamps {
  let known = Number.NaN;
  let dashed = '';
  let dotted = '';
  const turnTo = (dayNumber: number) => {
    if (dayNumber === known) return;
    known = dayNumber;
    dashed = new Date(dayNumber * MS_PER_DAY).toISOString().slice(0, 10);
    const [year, month, day] = dashed.split('-').map(Number);
    dotted = `${year}.${month}.${day} `;
  };
  const split = (ms: number): number => {
    const dayNumber = Math.floor((ms + offsetMs) / MS_PER_DAY);
    turnTo(dayNumber);
    return ms + offsetMs - dayNumber * MS_PER_DAY;
  };
  return {
    full: (ms) => {
      const rest = split(ms);
      return `${dashed} ${TWO[(rest / 3_600_000) | 0]}:${TWO[((rest / 60_000) | 0) % 60]}:${TWO[((rest / 1_000) | 0) % 60]}.${THREE[rest % 1_000]}`;
    },
    short: (ms) => {
      const rest = split(ms);
      return `${dotted}${(rest / 3_600_000) | 0}:${TWO[((rest / 60_000) | 0) % 60]}`;
    },
  };
}
