import { formatMinute } from '../../base/clock.ts';
import { formatCount } from '../../base/quantities.ts';
import { VERSION } from '../../base/version.ts';
import type { Proof, ProvedId } from '../../erasure/ledger/proof.ts';
import { answerText, countSentences, placeParagraph } from '../../erasure/ledger/proof-text.ts';
import { Html, html } from './html.ts';
import { pageOf } from './page.ts';

/** For paper: black on white, A4, no script, no request. */
const PROOF_STYLE = new Html(`
@page { size: A4; margin: 18mm 16mm 20mm; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem; max-width: 50rem; background: #fff; color: #111; font: 14px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.45rem; margin: 0 0 .25rem; } h2 { font-size: 1.05rem; margin: 1.5rem 0 .4rem; break-after: avoid; }
h2 + p { break-after: avoid; } code { font: inherit; white-space: nowrap; }
p, li { margin: .2rem 0; } ul { margin: 0; padding-left: 1.2rem; }
dl { display: grid; grid-template-columns: 9rem 1fr; gap: .2rem 1rem; margin: 1rem 0; }
dt { color: #444; } dd { margin: 0; overflow-wrap: anywhere; }
table { width: 100%; border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; table-layout: fixed; }
thead { display: table-header-group; } tr { break-inside: avoid; }
th, td { text-align: left; vertical-align: top; padding: .12rem .5rem .12rem 0; border-bottom: 1px solid #bbb; overflow-wrap: anywhere; }
table { margin-top: .4rem; } th:first-child, td:first-child { width: 3.5rem; text-align: right; padding-right: 1rem; }
th:nth-child(2) { width: 32%; }
.head { font: .8rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
.sign { display: grid; grid-template-columns: 1fr 1fr; gap: 2rem; margin: 4rem 0 2rem; break-inside: avoid; }
.sign p { border-top: 1px solid #111; padding-top: .3rem; }
@media print { body { padding: 0; max-width: none; font-size: 10.5pt; } }
`);

/**
 * A page to sign and to file: what a proof says of the ids of a list, by their rows. No id stands in it. `now`: the
 * instant at which it is made (ms). `isList`: false for a single id.
 */
export function proofPage(proof: Proof, { now, isList }: { readonly now: number; readonly isList: boolean }): string {
  const { service_id, base_url, head, ids, summary } = proof;
  const { requested_by, reasons, since, until } = summary;
  const dayOf = (at: string) => at.slice(0, 10);
  const places = summary.places.map(({ place }) => place);
  const headings = ['Row', 'The service', ...places];
  const paragraphs = [...countSentences(proof), ...summary.places.map(placeParagraph)];
  const content = html`<h1>Proof of erasure</h1>
<p>What the erasure ledger says of ${formatCount(ids.length, 'ID')}. This page names nobody.</p>
<dl>
<dt>Service</dt><dd>${service_id} at ${base_url}</dd>
<dt>Page made</dt><dd>${formatMinute(new Date(now).toISOString())} UTC, by dfinery-elt ${VERSION}</dd>
<dt>Runs</dt><dd>${since === null ? NOT_RECORDED : `${dayOf(since)} to ${dayOf(until ?? since)}`}</dd>
<dt>Asked for by</dt><dd>${requested_by.join(', ') || NOT_RECORDED}</dd>
<dt>Reason</dt><dd>${reasons.join('; ') || NOT_RECORDED}</dd>
</dl>
<h2>Summary</h2>
<ul>${paragraphs.map((paragraph) => html`<li>${paragraph}</li>`)}</ul>
${summary.open === 0 ? '' : html`<p>Some requests have no clear answer yet: the erasure must be run again.</p>`}
<h2>What stays</h2>
<ul>
${whatStays(proof).map((sentence) => html`<li>${sentence}</li>`)}
</ul>
<h2>The ledger</h2>
<p>Every line carries a keyed code of the line before it; the chain is whole. The code of its last line:</p>
<p class="head">${head}</p>
<div class="sign"><p>Place, date</p><p>Name, signature</p></div>
<h2>${isList ? 'The list, row by row' : 'The ID'}</h2>
<p>${isList ? 'Keep the list apart from this page: its row numbers connect the two.' : 'It was given when this page was made.'}
All times are UTC. A place has the number of rows that left it, and by when.</p>
<table>
<thead><tr>${headings.map((heading) => html`<th scope="col">${heading}</th>`)}</tr></thead>
<tbody>${ids.map((provedId) => tableRow(provedId, places))}</tbody>
</table>`;
  return pageOf(`Proof of erasure, ${new Date(now).toISOString().slice(0, 10)}`, PROOF_STYLE, content);
}

const NOT_RECORDED = 'not in the ledger';

function tableRow(provedId: ProvedId, places: readonly string[]): Html {
  const purgeTexts = places.map((place) => purgeText(provedId, place));
  const cells = [provedId.row, answerText(provedId, formatMinute), ...purgeTexts];
  return html`<tr>${cells.map((cell) => html`<td>${cell === '' ? '–' : cell}</td>`)}</tr>`;
}

/** What left a place by an id, and since when it was not purged; empty if the ledger has neither. */
function purgeText({ removals, unpurged }: ProvedId, place: string): string {
  const isOfPlace = (entry: { readonly place: string }) => entry.place === place;
  const removalTexts = removals.filter(isOfPlace).flatMap(({ rows, at, removed_at }) => {
    if (removed_at !== null) return `${formatCount(rows, 'row')} by ${formatMinute(removed_at)}`;
    return rows === 0 ? [] : `${formatCount(rows, 'row')} found ${formatMinute(at)}, removal not recorded`;
  });
  const unpurgedTexts = unpurged.filter(isOfPlace).map(({ since }) => `not purged since ${formatMinute(since)}`);
  return [...removalTexts, ...unpurgedTexts].join('; ');
}

const whatStays = ({ summary }: Proof): (string | Html)[] => [
  ...summary.places.flatMap(({ place, stays }) =>
    stays.length === 0 ? [] : [`In ${place}, made by others: ${stays.join(', ')}.`],
  ),
  'Other files of a place, beside the folders of its tables. They were not searched.',
  html`Copies, exports and backups that somebody made of a place. After a restore, <code>forget --suppressed</code> removes the people again.`,
  'Rows of before a login that nothing connects with the person.',
  'What the service itself keeps: this page says only what it answered.',
];
