/** One browser for all files of a run, started when the first of them asks for it. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { BrowserServer } from 'playwright-core';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** URL whose answer is the endpoint of the browser. */
    browser: string;
  }
}

let browser: Promise<BrowserServer> | undefined;

const server = createServer((_, response) => {
  browser ??= import('../support/browser.js').then(({ launchBrowser }) => launchBrowser());
  browser.then(
    (launched) => response.end(launched.wsEndpoint()),
    (error: unknown) => response.writeHead(500).end(String(error)),
  );
});

export async function setup(project: TestProject): Promise<void> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  project.provide('browser', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

export async function teardown(): Promise<void> {
  server.close();
  await (await browser)?.close();
}
