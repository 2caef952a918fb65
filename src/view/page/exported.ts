import type { AnswerExported, ExportedPage } from '../answers.js';

declare global {
  interface Window {
    /** Set by the scripts of an exported page before this one runs. */
    opmatePage?: ExportedPage;
    opmateExported?: { answerExported: AnswerExported };
  }
}

/** The files of an exported page; undefined where a server answers. */
export const exportedPage: ExportedPage | undefined = window.opmatePage;

/** Answers a request from the files of an exported page. Throws Error for what they do not hold. */
export async function answerFromFiles(page: ExportedPage, address: string): Promise<unknown> {
  if (window.opmateExported === undefined) throw new Error('the export lacks exported.js');
  return window.opmateExported.answerExported(page, address, (part) => load(page, part));
}

const loading = new Map<string, Promise<void>>();

/** Loads a script of the export, which adds its part; files opened from the disk cannot be fetched. */
async function load(page: ExportedPage, part: string): Promise<unknown> {
  let wait = loading.get(part);
  if (wait === undefined) {
    wait = new Promise<void>((resolve, reject) => {
      const script = document.createElement('script');
      script.src = `data/${part}.js`;
      script.onload = () => resolve();
      script.onerror = () => {
        loading.delete(part);
        reject(new Error(`data/${part}.js: not loaded`));
      };
      document.head.append(script);
    });
    loading.set(part, wait);
  }
  await wait;
  return page.parts[part];
}
