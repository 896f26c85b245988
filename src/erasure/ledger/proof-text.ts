import { count, withSeparators } from '../../base/quantities.ts';
import type { Verdict } from './chain.ts';
import type { Proof } from './proof.ts';

// A proof in words: for the terminal, and for the page to sign.

type ProvedId = Proof['ids'][number];

/** What left one place, as a sentence; and that something there may still hold the people. */
export function removalSentence({ place, rows, unreached }: Proof['summary']['places'][number]): string {
  const unreachedText = ' Something there could not be reached, and may hold the people: repair it, and purge again.';
  return `${place}: ${count(rows, 'row')} removed.${unreached ? unreachedText : ''}`;
}

/** The summary as sentences, for the terminal and for the page. */
export function summarySentences({ summary }: Pick<Proof, 'summary'>): string[] {
  const { ids, confirmed, rejected, open, not_asked, shown, unknown } = summary;
  const unlessZero = (n: number, text: string) => (n === 0 ? [] : [`${withSeparators(n)} ${text}`]);
  const states = [
    `${withSeparators(confirmed)} confirmed by the service`,
    `${withSeparators(rejected)} rejected by the service`,
    `${withSeparators(open)} open`,
    ...unlessZero(not_asked, 'purged without asking the service'),
    ...unlessZero(shown, 'shown alone'),
    ...unlessZero(unknown, 'without a line in the ledger'),
  ];
  const { since, until, requested_by, reasons, places } = summary;
  return [
    `${count(ids, 'ID')}: ${states.join(', ')}.`,
    ...places.map((place) => {
      const { stays } = place;
      const stay = stays.length === 0 ? '' : ` Not made by dfinery-elt, stays there: ${stays.join(', ')}.`;
      return `${removalSentence(place)}${stay}`;
    }),
    ...(requested_by.length === 0 ? [] : [`Asked for by: ${requested_by.join(', ')}.`]),
    ...(reasons.length === 0 ? [] : [`Reason: ${reasons.join('; ')}.`]),
    ...(since === null ? [] : [`From ${since} to ${until ?? since}.`]),
  ];
}

/** What the service said of an id last, as a sentence without its end. `timeOf` shows an instant. */
export function answerText({ state, answers, asked_at }: ProvedId, timeOf = (at: string) => at): string {
  const timeOfLast = (outcome: Verdict) => timeOf(answers.findLast((answer) => answer.outcome === outcome)?.at ?? '');
  switch (state) {
    case 'open':
      return asked_at === null ? 'open: never asked' : `open: asked at ${timeOf(asked_at)}, no clear answer`;
    case 'not_asked':
      return 'the service was not asked';
    case 'confirmed':
      return `confirmed ${timeOfLast('done')}`;
    case 'rejected':
      return `rejected (${answers.at(-1)?.code}) ${timeOfLast('rejected')}`;
    default:
      return 'no request in the ledger';
  }
}

/** What became of the rows in one place. */
function removalText({ at, place, rows, removed_at }: ProvedId['removals'][number]): string {
  if (removed_at === null) return `${at}  ${place}: ${count(rows, 'row')} found; no line says that they were removed`;
  return `${removed_at}  ${place}: ${rows === 0 ? 'held no row of this ID' : `${count(rows, 'row')} removed`}`;
}

function accessText({ at, rows, ways, places }: ProvedId['shown'][number]): string {
  if (rows > 0) return `${at}  ${count(rows, 'row')} of the person were shown (person)`;
  return `${at}  no row was found (person), looked for by ${ways.join(' and ')} in ${places.join(', ')}`;
}

/** The proof as lines for people: facts alone, each with its time. `isList`: the ids have rows of a list. */
export function proofLines(proof: Proof, isList: boolean): string[] {
  const { ids, problems, base_url, service_id, head } = proof;
  if (problems.length > 0) return [...problems, 'The ledger is broken and proves nothing.'];
  return [
    `Service ${service_id} at ${base_url}. The chain of the ledger is whole; its head is ${head}.`,
    ...summarySentences(proof),
    ...ids.flatMap((proved) => [
      isList ? `Row ${proved.row} of the list (${proved.id.slice(0, 16)}):` : `The ID (${proved.id.slice(0, 16)}):`,
      ...proved.answers.map(({ at, outcome, code }) =>
        outcome === 'done'
          ? `  ${at}  the service confirmed the deletion`
          : `  ${at}  the service rejected the ID (${code})`,
      ),
      ...(proved.state === 'open' || proved.state === 'not_asked' ? [`  ${answerText(proved)}`] : []),
      ...proved.removals.map((removal) => `  ${removalText(removal)}`),
      ...proved.shown.map((access) => `  ${accessText(access)}`),
      ...(proved.state === 'unknown' ? ['  The ledger has no answer and no removal for it.'] : []),
    ]),
  ];
}
