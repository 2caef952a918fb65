import { execFileSync } from 'node:child_process';
import { type Browser, chromium } from 'playwright-core';

const file = findBrowser();

/** Whether the system has a browser; where there is none, tests of pages are skipped. */
export const hasBrowser = file !== undefined;

/** Starts the browser of the system. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: file as string, args: ['--no-sandbox'] });
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
