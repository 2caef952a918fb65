import type {
  CompareAnswer,
  ComparedPackageAnswer,
  ProblemAnswer,
  ProblemsAnswer,
  StaticPage,
} from '../answers.js';
import { type SearchIndex, searchCatalog } from '../search.js';

/** Problems that one answer has, as those of a server. */
const problemWindow = 50;

declare global {
  interface Window {
    /** Set by an exported page before this script runs. */
    opmateStatic?: StaticPage;
  }
}

/** The answers that are part of an exported page; undefined where a server answers. */
export const staticPage: StaticPage | undefined = window.opmateStatic;

/** Answers a question from the files of an exported page. Throws Error for what they do not hold. */
export async function answerStatically(page: StaticPage, address: string): Promise<unknown> {
  const mark = address.indexOf('?');
  const path = mark < 0 ? address : address.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : address.slice(mark + 1));
  const name = query.get('package') ?? '';
  switch (path) {
    case 'api/state':
    case 'api/catalog':
      return page.catalog;
    case 'api/index':
      return load(page, 'index');
    case 'api/search':
      return searchCatalog((await load(page, 'index')) as SearchIndex, query.get('q') ?? '');
    case 'api/problems':
      return windowOf((await load(page, 'problems')) as ProblemAnswer[], query);
    case 'api/compare':
      return ((await load(page, 'compare')) as { compare: CompareAnswer }).compare;
  }
  const own = Object.hasOwn(page.files, name) ? page.files[name] : undefined;
  if (own === undefined) {
    const gone = path === 'api/compare/package' ? await load(page, 'compare') : undefined;
    const answer = (gone as { packages: Record<string, ComparedPackageAnswer> } | undefined)?.packages[name];
    if (answer !== undefined) return answer;
    throw new Error(`package ${JSON.stringify(name)} not found`);
  }
  const answers = (await load(page, own.part)) as Record<string, unknown>;
  if (Object.hasOwn(answers, address)) return answers[address];
  const isOfServer = path === 'api/path' || query.getAll('channel').length > 1;
  throw new Error(
    isOfServer ? 'an exported page does not have this: run opmate view' : `not found: ${query.toString()}`,
  );
}

const loading = new Map<string, Promise<void>>();

/** Loads a script of the export, which adds its part; files opened from the disk cannot be fetched. */
async function load(page: StaticPage, part: string): Promise<unknown> {
  let wait = loading.get(part);
  if (wait === undefined) {
    wait = new Promise<void>((resolve, reject) => {
      const script = document.createElement('script');
      script.src = `data/${part}.js`;
      script.onload = () => resolve();
      script.onerror = () => reject(new Error(`the export lacks data/${part}.js`));
      document.head.append(script);
    });
    loading.set(part, wait);
  }
  await wait;
  return page.parts[part];
}

function windowOf(all: readonly ProblemAnswer[], query: URLSearchParams): ProblemsAnswer {
  const [name, severity, check] = ['package', 'severity', 'check'].map((key) => query.get(key) ?? '');
  const from = Number(query.get('from') ?? 0);
  const ofAllChecks = all.filter(
    (one) => (name === '' || one.package === name) && (severity === '' || one.severity === severity),
  );
  const wanted = ofAllChecks.filter((one) => check === '' || one.check === check);
  const counts = new Map<string, number>();
  for (const one of ofAllChecks) counts.set(one.check, (counts.get(one.check) ?? 0) + 1);
  return {
    problems: wanted.slice(from, from + problemWindow),
    total: wanted.length,
    packages: [...new Set(all.map((one) => one.package))].filter((one) => one !== '').sort(),
    checks: [...counts].map(([one, count]) => ({ name: one, count })).sort((a, b) => b.count - a.count),
  };
}
