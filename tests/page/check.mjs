// Opens pages in Chromium and checks them; see tests/page/check. SHOTS=DIR keeps screenshots.
import {readFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {basename} from 'node:path';
import {pathToFileURL} from 'node:url';
import puppeteer from 'puppeteer-core';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const widths = [360, 400, 1280, 3840];
const schemes = ['light', 'dark'];
const faults = [];
const fault = (page, text) => { faults.push(`${basename(page)}: ${text}`); };

// Every text of a table cell is there without the script.
const numbers = page => page.evaluate(() => [...document.querySelectorAll('td')].map(cell => cell.textContent).join('\n'));
// Widths are compared with all details open: closed ones have none.
const unfold = page => page.evaluate(() => { for (const details of document.querySelectorAll('details')) details.open = true; });
const sideways = page => page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);

async function opened(browser, file, {script, width, scheme}) {
  const page = await browser.newPage();
  await page.setJavaScriptEnabled(script);
  await page.setViewport({width, height: width < 500 ? 740 : 1000});
  await page.emulateMediaFeatures([{name: 'prefers-color-scheme', value: scheme}]);
  page.on('console', message => {
    if (['error', 'warn'].includes(message.type())) fault(file, `console: ${message.text()}`);
  });
  page.on('pageerror', error => fault(file, `script: ${error.message}`));
  page.on('request', request => {
    if (request.url() !== pathToFileURL(file).href) fault(file, `request: ${request.url()}`);
  });
  page.on('dialog', dialog => { fault(file, `dialog: ${dialog.message()}`); dialog.dismiss(); });
  await page.goto(pathToFileURL(file).href, {waitUntil: 'load'});
  return page;
}

// The first screen answers; a page of one run is short.
async function first(page, file, width) {
  const below = await page.evaluate(() => {
    const wanted = ['.quality summary', document.querySelector('.expensive') ? '.expensive li p' : '.count'];
    return wanted.filter(one => !(document.querySelector(one)?.getBoundingClientRect().bottom <= innerHeight));
  });
  for (const one of below) fault(file, `at ${width} pixels ${one} is not on the first screen`);
  const clipped = await page.evaluate(() => [...document.querySelectorAll('.rows li > *')]
    .filter(cell => cell.localName !== 'svg' && cell.scrollWidth > cell.clientWidth + 1).length);
  if (clipped) fault(file, `at ${width} pixels ${clipped} names or values of rows are clipped`);
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  const isOne = await page.evaluate(() => document.querySelectorAll('.environment').length === 1);
  if (isOne && width === 1280 && height > 8000) fault(file, `it is ${height} pixels high`);
}

// On a telephone the ratio is seen without scrolling, in the tables that have one.
async function ratios(page, file, width) {
  const hidden = await page.evaluate(() => [...document.querySelectorAll('thead th')]
    .filter(head => /^(ratio|× \S+)$/.test(head.textContent) && head.getBoundingClientRect().right > innerWidth).length);
  if (hidden) fault(file, `at ${width} pixels the ratio of ${hidden} tables is not on the screen`);
}

// The link of a row leads to it, and opens the table that it is in.
async function linked(page, file) {
  const wrong = await page.evaluate(async () => {
    for (const details of document.querySelectorAll('details')) details.open = false;
    const rows = [...document.querySelectorAll('.results tbody tr:not(.group)')];
    const row = rows.at(-1);
    if (new Set(rows.map(row => row.id)).size !== rows.length) return 'two rows have one name';
    location.hash = row.querySelector('a').getAttribute('href');
    await new Promise(done => setTimeout(done, 300));
    const {top, bottom} = row.getBoundingClientRect();
    return row.checkVisibility() && top >= 0 && top < innerHeight && bottom > top ? '' : `${row.id} is not shown`;
  });
  if (wrong) fault(file, `links: ${wrong}`);
}

// The search shows the rows that match and opens their tables; the toggle leaves noisy rows out.
async function found(page, file) {
  const seen = await page.evaluate(() => {
    const shown = selector => [...document.querySelectorAll(selector)].filter(row => row.checkVisibility()).length;
    const ask = text => {
      const find = document.querySelector('nav input[type=search]');
      find.value = text;
      find.dispatchEvent(new Event('input'));
    };
    const rows = '.rows li, .results tr:not(.group)';
    const all = shown(rows);
    ask('entry/syscall');
    const asked = shown(rows);
    ask('no such row at all');
    const none = shown(rows);
    ask('');
    const again = shown(rows);
    const noisy = shown('.noisy');
    document.querySelector('nav input[type=checkbox]').click();
    const quiet = shown('.noisy');
    document.querySelector('nav input[type=checkbox]').click();
    return {all, asked, none, again, noisy, quiet};
  });
  const {all, asked, none, again, quiet} = seen;
  if (!(asked > 0 && asked < all && none === 0 && again === all && quiet === 0)) {
    fault(file, `search or toggle: ${JSON.stringify(seen)}`);
  }
}

async function look(browser, file) {
  const plain = await opened(browser, file, {script: false, width: 1280, scheme: 'light'});
  const without = await numbers(plain);
  await plain.close();
  if (without.length < 100) fault(file, 'there are no numbers without the script');

  for (const scheme of schemes) {
    // Only colours differ in the dark, and the rules of accessibility look at them at the narrowest width.
    for (const width of scheme === 'light' ? widths : widths.slice(0, 1)) {
      const page = await opened(browser, file, {script: true, width, scheme});
      if (process.env.SHOTS) {
        await page.screenshot({path: `${process.env.SHOTS}/${basename(file, '.html')}-${width}-${scheme}.png`, fullPage: true});
      }
      await first(page, file, width);
      await unfold(page);
      const over = await sideways(page);
      if (over > 0) fault(file, `at ${width} pixels it is ${over} pixels too wide`);
      if (width === 400) await ratios(page, file, width);
      if (await numbers(page) !== without) fault(file, 'the script changes numbers');
      // Every rule once in each scheme, at the narrowest width.
      if (width === widths[0]) {
        await page.evaluate(axe);
        const found = await page.evaluate(async () => (await globalThis.axe.run(document, {resultTypes: ['violations']})).violations);
        for (const {id, help, nodes} of found) fault(file, `${scheme}: ${id}: ${help}: ${nodes[0].html.slice(0, 200)} (${nodes.length} of them)`);
      }
      // The script sorts by the second column.
      if (width === 1280 && scheme === 'light') {
        const sorted = await page.evaluate(() => {
          const table = document.querySelector('table.results');
          const button = table.querySelectorAll('thead button')[1];
          button.focus();
          return document.activeElement === button;
        }) && await page.keyboard.press('Enter').then(() => page.evaluate(() =>
          document.querySelector('table.results').querySelectorAll('thead th')[1].ariaSort));
        if (sorted !== 'ascending') fault(file, 'tables cannot be sorted');
        await found(page, file);
        await linked(page, file);
        await unfold(page);
        await page.emulateMediaType('print');
        const nameless = await page.evaluate(() => [...document.querySelectorAll('thead th')]
          .filter(head => head.checkVisibility() && !head.innerText.trim()).length);
        await page.emulateMediaType('screen');
        if (nameless) fault(file, `${nameless} columns have no name in print`);
        const silent = await page.evaluate(() => [...document.querySelectorAll('.group[data-run] ~ tr details')]
          .filter(details => !details.textContent.includes("tollgate run '")).length);
        if (silent) fault(file, `${silent} rows do not name the command that measures them again`);
      }
      await page.close();
    }
  }
}

const browser = await puppeteer.launch({executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu']});
try {
  for (const file of process.argv.slice(2)) await look(browser, file);
} finally {
  await browser.close();
}
for (const text of faults) console.log(`failed: ${text}`);
if (faults.length) process.exit(1);
console.log(`${process.argv.length - 2} pages: no request, no error, no violation, at ${widths.join(', ')} pixels, and at ${widths[0]} in the dark`);
