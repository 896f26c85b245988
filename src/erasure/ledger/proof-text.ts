import { formatCount, withSeparators } from '../../base/quantities.ts';
import { refusedParagraph } from '../list/id-list.ts';
import { ID_STATES, standingAnswerOf } from './id-history.ts';
import type { Proof, ProvedId } from './proof.ts';

// A proof in words: for the terminal, and for the page to sign. A text is a phrase, a paragraph is several sentences.

type ProvedPlace = Proof['summary']['places'][number];

/** What the summary says of the number of ids in a state. */
const STATE_TEXTS: Readonly<Record<ProvedId['state'], string>> = {
  confirmed: 'confirmed by the service',
  rejected: 'rejected by the service',
  open: 'open',
  not_asked: 'without a request to the service',
  shown: 'shown alone',
  unknown: 'without a line in the ledger',
};
/** The states that the summary counts also if no id is in them. */
const ALWAYS_COUNTED: readonly ProvedId['state'][] = ['confirmed', 'rejected', 'open'];

/** What the service said of an id, without an end. `timeOf` shows an instant. */
export function answerText(provedId: ProvedId, timeOf: (at: string) => string): string {
  const { state, asked_at, answers } = provedId;
  if (state === 'open' && asked_at !== null) return `open: asked at ${timeOf(asked_at)}, no clear answer`;
  if (state === 'not_asked') return 'the service was not asked';
  const answer = standingAnswerOf(answers);
  if (answer === undefined) return state === 'open' ? 'open: never asked' : 'no request in the ledger';
  const outcome = answer.outcome === 'done' ? 'confirmed' : `rejected (${answer.code})`;
  const text = `${outcome} ${timeOf(answer.at)}`;
  return state === 'open' ? `open: ${text}, then purged and not asked again` : text;
}

/** What left one place, and what there may still hold the people. */
export function placeParagraph(provedPlace: ProvedPlace): string {
  const { place, rows, unfinished, left_out_since, unreached, new_list_at } = provedPlace;
  return [
    `${place}: ${formatCount(rows, 'row')} found by ID and removed.`,
    unfinished ? 'A purge there was not finished, and people may still be there: run the same command again.' : [],
    left_out_since === null
      ? []
      : `The erasure of ${left_out_since} named it, later ones did not. It was not purged since, and people may still be there.`,
    unreached ? 'Something there could not be reached, and may hold the people: repair it, and purge again.' : [],
    new_list_at === null ? [] : `The suppression list was begun anew at ${new_list_at}: rows may have come back since.`,
  ]
    .flat()
    .join(' ');
}

/** How many ids are in which state, and of what else the proof says nothing, as sentences. */
export function countSentences({ summary, service_id, other_addresses }: Proof): string[] {
  const states = ID_STATES.filter((state) => summary[state] > 0 || ALWAYS_COUNTED.includes(state));
  const counts = states.map((state) => `${withSeparators(summary[state])} ${STATE_TEXTS[state]}`);
  const refusals = refusedParagraph(summary);
  return [
    `${formatCount(summary.ids, 'ID')}: ${counts.join(', ')}.`,
    otherAddressesSentence(service_id, other_addresses) ?? [],
    refusals === undefined ? [] : `${refusals} The proof says nothing of them.`,
  ].flat();
}

/** That the ledger has the service under other addresses, too; undefined if it has not. */
export function otherAddressesSentence(serviceId: string, addresses: readonly string[]): string | undefined {
  if (addresses.length === 0) return undefined;
  return `The ledger also has the service ${serviceId} at ${addresses.join(', ')}: those deletions do not count here.`;
}

export function summarySentences(proof: Proof): string[] {
  const { since, until, requested_by, reasons, places } = proof.summary;
  const staysText = ({ stays }: ProvedPlace) =>
    stays.length === 0 ? '' : ` Not made by dfinery-elt, stays there: ${stays.join(', ')}.`;
  return [
    countSentences(proof),
    places.map((place) => `${placeParagraph(place)}${staysText(place)}`),
    requested_by.length === 0 ? [] : `Asked for by: ${requested_by.join(', ')}.`,
    reasons.length === 0 ? [] : `Reason: ${reasons.join('; ')}.`,
    since === null ? [] : `From ${since} to ${until ?? since}.`,
  ].flat();
}

/** The proof as lines for people: facts alone, each with its time. `isList`: the ids have rows of a list. */
export function proofLines(proof: Proof, isList: boolean): string[] {
  const { ids, problems, base_url, service_id, head } = proof;
  if (problems.length > 0) return [...problems, 'The ledger is broken and proves nothing.'];
  return [
    `Service ${service_id} at ${base_url}. The chain of the ledger is whole; its head is ${head}.`,
    ...summarySentences(proof),
    ...ids.flatMap((provedId) => [
      `${isList ? `Row ${provedId.row} of the list` : 'The ID'} (${provedId.id.slice(0, 16)}):`,
      ...linesOfId(provedId).map((line) => `  ${line}`),
    ]),
  ];
}

/** What happened to an id, in the order of time; then what has not happened. */
function linesOfId(provedId: ProvedId): string[] {
  const { state, answers, removals, unpurged, shown } = provedId;
  const events = [
    ...unpurged.map(({ place, since: at }) => ({ at, text: `${place}: named in the erasure, and not purged since` })),
    ...removals.map(({ at, place, rows, removed_at }) => {
      const foundText = formatCount(rows, 'row');
      if (removed_at === null) return { at, text: `${place}: ${foundText} found; no line says that they were removed` };
      const text = rows === 0 ? 'no row was found by this ID' : `${foundText} removed`;
      return { at: removed_at, text: `${place}: ${text}` };
    }),
    ...answers.map(({ at, outcome, code }) => {
      const text = outcome === 'done' ? 'confirmed the deletion' : `rejected the ID (${code})`;
      return { at, text: `the service ${text}` };
    }),
    ...shown.map(({ at, rows, ways, places }) => {
      if (rows > 0) return { at, text: `${formatCount(rows, 'row')} of the person were shown (person)` };
      return { at, text: `no row was found (person), looked for by ${ways.join(' and ')} in ${places.join(', ')}` };
    }),
  ];
  return [
    ...events.sort((a, b) => a.at.localeCompare(b.at)).map(({ at, text }) => `${at}  ${text}`),
    ...(state === 'open' || state === 'not_asked' ? [answerText(provedId, String)] : []),
    ...(state === 'unknown' ? ['The ledger has no answer and no removal for it.'] : []),
  ];
}
