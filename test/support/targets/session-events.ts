/** An event as a test of sessions tells it; `at`: `HH:mm` on one day. */
export interface Told {
  readonly id: string;
  readonly person?: string;
  readonly name: string;
  readonly at?: string;
  readonly [column: string]: string | undefined;
}

export const START = 'df_start_session';
export const END = 'df_end_session';

/** Times never tie, so that the order is plain. */
export function randomEvents(people: number, each: number): Told[] {
  let seed = 7;
  const next = (below: number) => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((seed / 2_147_483_648) * below);
  };
  return Array.from({ length: people }, (_, p) => p).flatMap((p) => {
    const minutes = new Set(Array.from({ length: each }, () => next(1_440)));
    return [...minutes].map((minute) => ({
      id: `e${p}-${minute}`,
      person: `p${String(p).padStart(2, '0')}`,
      name: [START, END, 'x', 'y', 'z'][next(5)],
      at: `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`,
    }));
  });
}

/** The rule, event by event: what the SQL has to give. */
export function readSessions(events: readonly Told[]) {
  const sessions: { person: string; session_id: string; events: string; length: string }[] = [];
  const people = [...new Set(events.map(({ person }) => person ?? ''))].sort();
  for (const person of people) {
    const own = events
      .filter((event) => event.person === person)
      .sort((a, b) => ((a.at ?? '') < (b.at ?? '') ? -1 : 1));
    let open: Told[] = [];
    const close = () => {
      if (open.length === 0) return;
      const isExact = open[0].name === START && open.at(-1)?.name === END;
      const length = isExact ? 'exact' : open.length > 1 ? 'at_least' : 'unknown';
      sessions.push({ person, session_id: open[0].id, events: String(open.length), length });
      open = [];
    };
    own.forEach((event, i) => {
      const before = open.at(-1);
      const boundary = own.slice(i).find(({ name }) => name === START || name === END);
      const isEnclosed = open[0]?.name === START && boundary?.name === END;
      if (event.name === START || before?.name === END) close();
      else if (before !== undefined && !isEnclosed && minutesOf(event) - minutesOf(before) > 30) close();
      open.push(event);
    });
    close();
  }
  return sessions;
}

const minutesOf = ({ at = '' }: Told) => Number(at.slice(0, 2)) * 60 + Number(at.slice(3));
