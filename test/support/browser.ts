import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type Browser, type BrowserServer, type Page, chromium } from 'playwright-core';
import { afterAll, beforeAll, expect, inject } from 'vitest';
import { projectRoot } from './command-line.js';

const file = findBrowser();

/** Whether the system has a browser; where there is none, tests of pages are skipped. */
export const hasBrowser = file !== undefined;

/** Starts the browser of the system, for clients. */
export function launchBrowser(): Promise<BrowserServer> {
  return chromium.launchServer({ executablePath: file as string, args: ['--no-sandbox'] });
}

/** Connects to the browser of the run. Closing the connection closes its pages. */
export async function connectBrowser(): Promise<Browser> {
  const answer = await fetch(inject('browser'));
  return chromium.connect(await answer.text());
}

/** Expression for the number of pixels by which a page is wider than its window. */
export const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';

/** Opens a URL on a phone in dark mode, before the tests of a block, and waits for what a selector matches. */
export function usePhone(getUrl: () => string, ready: string): () => Page {
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    browser = await connectBrowser();
    page = await browser.newPage({ viewport: { width: 390, height: 800 }, colorScheme: 'dark' });
    await page.goto(getUrl());
    await page.locator(ready).first().waitFor();
  });
  afterAll(() => browser.close());
  return () => page;
}

/** Requires that a page fits a phone, is dark, and has run no script of hostile names. */
export async function requirePhonePage(page: Page): Promise<void> {
  expect(await page.evaluate(overflow)).toBe(0);
  expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(20, 22, 26)');
  expect(await page.evaluate('window.ran')).toBeUndefined();
}

/** Color schemes and widths in which pages are checked by axe-core. */
export const screens = [
  ['light', 390],
  ['dark', 1920],
] as const;

/** Returns the violations that axe-core finds in a page, each with its first element. */
export async function findViolations(page: Page): Promise<string[]> {
  await page.evaluate(await readFile(path.join(projectRoot, 'node_modules/axe-core/axe.min.js'), 'utf8'));
  const { violations } = await page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
    'axe.run()',
  );
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

function findBrowser(): string | undefined {
  for (const name of ['chromium', 'chromium-browser', 'google-chrome']) {
    try {
      return execFileSync('which', [name], { encoding: 'utf8' }).trim();
    } catch {
      // The next one, then.
    }
  }
  return undefined;
}
