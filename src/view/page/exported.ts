import type { ExportedRequestHandler, ExportedPage } from '../responses.js';

declare global {
  interface Window {
    /** Set by the scripts of an exported page. */
    opmatePage?: ExportedPage;
    opmateExported?: { handleExportedRequest: ExportedRequestHandler };
  }
}

/** Files of an exported page; undefined for a page with a server. */
export const exportedPage: ExportedPage | undefined = window.opmatePage;

/** Handles a request from the files of an exported page. Throws Error. */
export async function requestFromFiles(page: ExportedPage, address: string): Promise<unknown> {
  if (window.opmateExported === undefined) throw new Error('missing file: exported.js');
  return window.opmateExported.handleExportedRequest(page, address, (part) => load(page, part));
}

const loading = new Map<string, Promise<void>>();

/** Loads a part as a script: files that are opened from the disk cannot be fetched. */
async function load(page: ExportedPage, part: string): Promise<unknown> {
  let wait = loading.get(part);
  if (wait === undefined) {
    wait = new Promise<void>((resolve, reject) => {
      const script = document.createElement('script');
      script.src = `data/${part}.js`;
      script.onload = () => resolve();
      script.onerror = () => {
        loading.delete(part);
        reject(new Error(`data/${part}.js: loading failed`));
      };
      document.head.append(script);
    });
    loading.set(part, wait);
  }
  await wait;
  return page.parts[part];
}
