// Opens pages in headless Chromium at three widths and in both themes: no console message, no request, nothing cut off, no chart
// that leaves its place empty, no violation of axe-core's rules. Usage: node test/browser/check.mjs PAGE.html… [--pictures DIR]
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const at = process.argv.indexOf('--pictures');
const pictures = at === -1 ? undefined : process.argv[at + 1];
/** Pixels of a page that a picture shows, from its top: docs/report.png is one of these. */
const PICTURE_HEIGHT = 1_560;
const pages = process.argv.slice(2, at === -1 ? undefined : at);
const views = [1400, 800, 400].flatMap((width) => ['light', 'dark'].map((colorScheme) => ({ width, colorScheme })));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
let problems = 0;
const tell = (text) => {
  problems++;
  process.stdout.write(`${text}\n`);
};
try {
  for (const path of pages) for (const view of views) await look(path, view);
} finally {
  await browser.close();
}
process.stdout.write(`${pages.length} pages, ${views.length} views each, ${problems} problems\n`);
process.exitCode = problems === 0 && pages.length > 0 ? 0 : 1;

async function look(path, { width, colorScheme }) {
  // The policy of the page forbids scripts: axe-core is one.
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
  const page = await context.newPage();
  const where = `${path} at ${width} px, ${colorScheme}`;
  page.on('console', (message) => tell(`${where}: console: ${message.text()}`));
  page.on('pageerror', (error) => tell(`${where}: error: ${error.message}`));
  page.on('request', (request) => {
    if (request.url() !== pathToFileURL(resolve(path)).href) tell(`${where}: request: ${request.url()}`);
  });
  await page.goto(pathToFileURL(resolve(path)).href);
  const overflow = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (overflow > 0) tell(`${where}: ${overflow} px wider than the window`);
  for (const problem of await page.evaluate(chartProblems)) tell(`${where}: ${problem}`);
  if (pictures !== undefined) {
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({
      path: join(pictures, `${basename(path, '.html')}-${width}-${colorScheme}.png`),
      fullPage: true,
      clip: { x: 0, y: 0, width, height: PICTURE_HEIGHT },
    });
  }
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  for (const { id, help, nodes } of violations) {
    tell(`${where}: ${id}: ${help} (${nodes.length} places, first: ${nodes[0].html.slice(0, 160)})`);
  }
  await context.close();
}

/** In the page: charts that scroll, that leave much of the line empty, and labels that lie on one another or outside. */
function chartProblems() {
  const problems = [];
  const rows = new Map();
  for (const figure of document.querySelectorAll('figure.chart')) {
    const box = figure.getBoundingClientRect();
    const name = figure.querySelector('.plot').getAttribute('aria-label');
    rows.set(Math.round(box.top), (rows.get(Math.round(box.top)) ?? 0) + box.width);
    if (figure.scrollWidth > figure.clientWidth || box.right > innerWidth) problems.push(`cut off: ${name}`);
    const labels = [...figure.querySelectorAll('.labels span')].map((label) => label.getBoundingClientRect());
    if (labels.some(({ left }, i) => i > 0 && left < labels[i - 1].right)) problems.push(`labels overlap: ${name}`);
    if (labels.some(({ left, right }) => left < 0 || right > innerWidth)) problems.push(`label cut off: ${name}`);
  }
  for (const width of rows.values()) if (width < innerWidth * 0.85) problems.push(`${width} px of charts in a line`);
  return problems;
}
