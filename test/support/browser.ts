import { execFileSync } from 'node:child_process';
import { type Browser, type BrowserServer, chromium } from 'playwright-core';
import { inject } from 'vitest';

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
