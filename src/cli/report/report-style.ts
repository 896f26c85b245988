import { DAY_STATES } from './day-calendar.ts';
import { Html } from './html.ts';

/** One for each of the `MAX_REPORTED_NAMES` (8) that a report counts by themselves, and one for all others. */
const SERIES_RULES = [1, 2, 3, 4, 5, 6, 7, 8, 9]
  .map((n) => `.series-${n} { fill: var(--series-${n}); background: var(--series-${n}); }`)
  .join('\n');

const DAY_STATE_RULES = Object.keys(DAY_STATES)
  .map((state) => `.${state} { background: var(--${state}); }`)
  .join('\n');

/** The page's only style sheet: light and dark as the reader chooses, for narrow screens and for paper. */
export const REPORT_STYLE = new Html(`
:root { color-scheme: light dark; --page: #fff; --panel: #f6f7f9; --text: #1c2128; --quiet: #57606a; --line: #d0d7de;
  --loaded: #c5e8ca; --read-again: #9fd0f5; --so-far: #e3f4d7; --lost: #f4b8b4; --pruned: #cfc8e8; --not-there-yet: #e6e8eb; --lost-soon: #ffd479;
  --series-1: #2f6fb3; --series-2: #c4621a; --series-3: #2e8540; --series-4: #a8324a; --series-5: #6d4fb0;
  --series-6: #8a6d00; --series-7: #1f8a8a; --series-8: #a23d8f; --series-9: #848d97; }
@media (prefers-color-scheme: dark) { :root { --page: #14171c; --panel: #1d2229; --text: #e4e8ed; --quiet: #a5afba; --line: #39414b;
  --loaded: #1f5c31; --read-again: #1d4f7c; --so-far: #33462a; --lost: #82302c; --pruned: #4a4272; --not-there-yet: #2c333b; --lost-soon: #7a5600;
  --series-1: #6cb0f2; --series-2: #f0965a; --series-3: #6cc783; --series-4: #f0849a; --series-5: #b39cf2;
  --series-6: #d9b945; --series-7: #5ccccc; --series-8: #e68fd3; --series-9: #9aa4af; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 100rem; margin: 0 auto; padding: 1.5rem clamp(.75rem, 3vw, 3rem) 3rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
p { margin: .25rem 0 .75rem; max-width: 75ch; } .quiet { color: var(--quiet); }
dl.figures { display: grid; grid-template-columns: repeat(var(--columns), 1fr); gap: .75rem; margin: 1rem 0 0; }
dl.figures div { background: var(--panel); border: 1px solid var(--line); border-radius: .4rem; padding: .5rem .75rem; }
dl.figures dt { color: var(--quiet); font-size: .85rem; } dl.figures dd { margin: 0; font-size: 1.1rem; font-weight: 600; overflow-wrap: anywhere; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
ul.legend { list-style: none; display: flex; flex-wrap: wrap; gap: .35rem 1.25rem; padding: 0; margin: .5rem 0 1rem; font-size: .9rem; }
.swatch { display: inline-block; width: .9rem; height: .9rem; border-radius: .2rem;
  margin-right: .4rem; vertical-align: -.1rem; border: 1px solid var(--line); }
.months { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 1.25rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
table.month caption { text-align: left; font-weight: 600; padding-bottom: .25rem; }
table.month th { font-weight: 400; font-size: .8rem; color: var(--quiet); }
table.month th, table.month td { width: 2.3rem; height: 2.1rem; text-align: center; position: relative; }
table.month td time { font-size: .85rem; } table.month td b { display: block; font-size: .65rem; line-height: 1; }
${DAY_STATE_RULES}
table.month td[class] { border: 2px solid var(--page); border-radius: .35rem; }
.scroll { overflow-x: auto; max-width: 100%; }
.scroll:focus-visible { outline: 2px solid var(--series-1); }
table.list { width: 100%; font-size: .9rem; } table.list th { text-align: left; color: var(--quiet); font-weight: 600; }
table.list th, table.list td { padding: .25rem .6rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
table.list .text { min-width: 6rem; max-width: 24rem; overflow-wrap: break-word; }
table.list .number { text-align: right; white-space: nowrap; padding-right: 1.5rem; }
figure.chart { display: grid; grid-template-columns: auto 1fr; column-gap: .5rem; margin: .5rem 0 1.25rem; font-size: .8rem; color: var(--quiet); }
figure.chart .unit { grid-column: 1 / -1; margin: 0 0 .6rem; }
.scale { display: flex; flex-direction: column; justify-content: space-between; text-align: right; } .scale span { line-height: 0; }
.plot { position: relative; height: 11rem; display: flex; flex-direction: column; justify-content: space-between; }
.plot hr { margin: 0; border: 0; border-top: 1px solid var(--line); height: 0; } .plot svg { position: absolute; inset: 0; width: 100%; height: 100%; }
.labels { grid-column: 2; position: relative; height: 1.6rem; margin-top: .35rem; }
.labels span { position: absolute; left: var(--at); transform: translateX(-50%); white-space: nowrap; }
figure.chart .legend { grid-column: 1 / -1; color: var(--text); overflow-wrap: anywhere; }
${SERIES_RULES}
@media (max-width: 48rem) { dl.figures { grid-template-columns: 1fr 1fr; } dl.figures div:last-child:nth-child(odd) { grid-column: 1 / -1; } }
@media (max-width: 30rem) { table.list { font-size: .72rem; } table.list th, table.list td { padding-right: .4rem; }
  table.list .text { min-width: 3.9rem; max-width: 7.5rem; overflow-wrap: anywhere; } table.list .number { padding-right: .5rem; }
  .months { gap: .75rem; } }
details summary { cursor: pointer; color: var(--quiet); }
@media print { main { max-width: none; padding: 0; } h2 { break-after: avoid; } figure, table.month, tr { break-inside: avoid; }
  .scroll { overflow: visible; } details::details-content { content-visibility: visible; block-size: auto; } :root { --page: #fff; --panel: #fff; --text: #000; --quiet: #444; --line: #bbb; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
`);
